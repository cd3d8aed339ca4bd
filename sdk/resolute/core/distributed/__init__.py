"""Collectives between the processes of one trial."""

from resolute.core.distributed.context import DistributedContext, DummyDistributedContext
from resolute.core.distributed.errors import (
    CollectiveAuthError,
    CollectiveError,
    CollectiveOrderError,
    CollectiveTimeoutError,
    ContextClosedError,
    ForkedContextError,
    LaunchVariablesError,
    MalformedFrameError,
    PeerClosedError,
    PeerLostError,
)

__all__ = [
    "CollectiveAuthError",
    "CollectiveError",
    "CollectiveOrderError",
    "CollectiveTimeoutError",
    "ContextClosedError",
    "DistributedContext",
    "DummyDistributedContext",
    "ForkedContextError",
    "LaunchVariablesError",
    "MalformedFrameError",
    "PeerClosedError",
    "PeerLostError",
]
