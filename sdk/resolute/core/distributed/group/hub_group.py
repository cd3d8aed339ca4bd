"""Gather, allgather and broadcast among a group of several processes."""

import os
import threading
from typing import Any

from resolute.core.distributed.errors import CollectiveError, ContextClosedError, ForkedContextError
from resolute.core.distributed.group.collectives import ROOT
from resolute.core.distributed.group.hub import Hub
from resolute.core.distributed.group.hub_client import HubClient
from resolute.core.distributed.transport.messages import Message, Op
from resolute.core.distributed.transport.payload import NO_PAYLOAD, Payload, dump, load


class HubGroup:
    """A group whose messages go through its first member.

    Args:
        member: This rank's client of the hub.
        hub: The hub, if it is in this process.
    """

    def __init__(self, member: HubClient, hub: Hub | None) -> None:
        self.member = member
        self._hub = hub
        self._index = member.index
        self._size = member.size
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._closed = False
        self._failure: BaseException | None = None

    def gather(self, value: Any) -> list[Any] | None:
        """All values at the root, in the order of the ranks; None elsewhere."""
        parts = self._run(Op.GATHER, dump(value))
        return self._values(value, parts) if self._index == ROOT else None

    def allgather(self, value: Any) -> list[Any]:
        """All values, in the order of the ranks. A rank's own entry is the very object that it gave."""
        return self._values(value, self._run(Op.ALLGATHER, dump(value)))

    def broadcast(self, value: Any) -> Any:
        """The root's value. The root does not wait for the others."""
        if self._index == ROOT:
            self._run(Op.BROADCAST, dump(value))
            return value
        return self._load(self._run(Op.BROADCAST, NO_PAYLOAD)[ROOT])

    def close(self) -> None:
        """Leaves the group; a root ends it. In a forked child this does nothing."""
        if self._closed or os.getpid() != self._pid:
            return
        if not self._lock.acquire(blocking=False):
            raise CollectiveError(
                "close() was called while another thread of this process is in a collective"
            )
        try:
            self._closed = True
            self.member.close()
            if self._hub is not None:
                self._hub.stop()
        finally:
            self._lock.release()

    def _run(self, op: Op, payload: Payload) -> dict[int, Message]:
        if os.getpid() != self._pid:
            raise ForkedContextError(
                f"this process ({os.getpid()}) was forked from {self._pid}, and only that one can use its "
                "DistributedContext: gather what is needed before the fork"
            )
        if not self._lock.acquire(blocking=False):
            raise CollectiveError(
                f"{op.call} was called while another thread of this process is in a collective: "
                "use a DistributedContext from one thread"
            )
        try:
            self._check()
            return self.member.run(op, payload)
        except BaseException as error:
            # This rank is out of step now. The next call must say so, and not take the answer to this one.
            self._failure = self._failure or error
            raise
        finally:
            self._lock.release()

    def _check(self) -> None:
        if self._closed:
            raise ContextClosedError("the DistributedContext is closed")
        failure = self._failure
        if isinstance(failure, CollectiveError):
            raise type(failure)(str(failure), ranks=failure.ranks)
        if failure is not None:
            raise ContextClosedError(f"an earlier collective of this rank was interrupted by {failure!r}")

    def _values(self, own: Any, parts: dict[int, Message]) -> list[Any]:
        return [own if member == self._index else self._load(parts[member]) for member in range(self._size)]

    def _load(self, part: Message) -> Any:
        # The root's thread may still be sending the same memory to others.
        return load(part.encoding, part.frames, private=self._hub is None)
