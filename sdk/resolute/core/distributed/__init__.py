"""Communication between the processes of one trial.

`DistributedContext` with gather, allgather and broadcast, the topology that launchers announce, settings
from the environment, and the errors. `group` implements process groups, `transport` carries their messages.
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
