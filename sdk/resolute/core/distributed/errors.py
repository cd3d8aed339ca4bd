"""Errors between the processes of one trial.

Each is a `RuntimeError` and names the ranks at fault in `ranks`.
"""

from collections.abc import Sequence

from resolute.errors import ForkedProcessError, ResoluteError


class CollectiveError(ResoluteError, RuntimeError):
    """A gather, allgather or broadcast (or their start) cannot be done.

    Attributes:
        ranks: The ranks at fault, counted over the whole job; empty where that is not known.
    """

    def __init__(self, message: str, *, ranks: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.ranks: tuple[int, ...] = tuple(ranks)


class PeerLostError(CollectiveError):
    """A process died, or its host can no longer be reached."""


class PeerClosedError(CollectiveError):
    """A process closed its context (or ended) while others still need it."""


class CollectiveTimeoutError(CollectiveError, TimeoutError):
    """Some ranks did not come in time; `ranks` are the silent ones."""


class CollectiveOrderError(CollectiveError):
    """The ranks do not make the same calls in the same order, or a message is out of order."""


class CollectiveAuthError(CollectiveError):
    """A message does not carry the proof that `RESOLUTE_COLLECTIVE_KEY` asks for."""


class MalformedFrameError(CollectiveError):
    """Bytes arrived that are no message of this protocol."""


class ContextClosedError(CollectiveError):
    """The context was used after `close()`, or after a call that was interrupted half way."""


class ForkedContextError(CollectiveError, ForkedProcessError):
    """A forked child used the context of its parent."""


class LaunchVariablesError(CollectiveError, KeyError):
    """The environment does not say which rank this process is.

    It is a `KeyError` too, because scripts tell a launched run from a plain one by catching that.
    """

    def __str__(self) -> str:
        # KeyError would show the repr of its argument.
        return str(self.args[0])
