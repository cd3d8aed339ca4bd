"""Communication between the processes of one trial.

It has `DistributedContext` with gather, allgather and broadcast, the topology from the variables of
launchers, settings from the environment, and the errors. `group` implements process groups, `transport` their
messages.
"""

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
