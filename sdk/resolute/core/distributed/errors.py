"""Errors between the processes of one trial.

Each is a `RuntimeError` and names the ranks at fault in `ranks`.
"""

from collections.abc import Sequence

from resolute.errors import ForkedProcessError, ResoluteError


class CollectiveError(ResoluteError, RuntimeError):
    """A gather, allgather or broadcast failed, or the start of the group.

    Attributes:
        ranks: The ranks at fault, as ranks of the whole job; empty if unknown.
    """

    def __init__(self, message: str, *, ranks: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.ranks: tuple[int, ...] = tuple(ranks)


class PeerLostError(CollectiveError):
    """A process died, or its host can no longer be reached."""


class PeerClosedError(CollectiveError):
    """A process closed its context (or ended) while others still need it."""


class CollectiveTimeoutError(CollectiveError, TimeoutError):
    """Some ranks did not respond in time; `ranks` names them."""


class CollectiveOrderError(CollectiveError):
    """The ranks do not make the same calls in the same order, or a message is out of order."""


class CollectiveAuthError(CollectiveError):
    """A message has no valid signature, although `RESOLUTE_COLLECTIVE_KEY` is set."""


class MalformedFrameError(CollectiveError):
    """Received bytes are not a message of this protocol."""


class ContextClosedError(CollectiveError):
    """The context was used after `close()`, or after an interrupted call."""


class ForkedContextError(CollectiveError, ForkedProcessError):
    """A forked child used the context of its parent."""


class LaunchVariablesError(CollectiveError, KeyError):
    """The environment does not give the rank of this process.

    It is also a `KeyError`, because scripts catch that to distinguish a launched run from a plain one.
    """

    def __str__(self) -> str:
        # KeyError would show the repr of its argument.
        return str(self.args[0])
