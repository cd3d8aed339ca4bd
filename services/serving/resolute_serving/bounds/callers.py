"""Limits the number of calls in progress of one user, of one run, and of one address of strangers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from weakref import WeakSet, WeakValueDictionary

from resolute.errors import QuotaError
from resolute_serving.context import Principal, ServiceAccount, TrialRun, User

MOST_CALLS_OF_CALLER = 4_000
"""Calls in progress of one caller at one server, streams among them."""
MOST_AWAITED_OF_CALLER = 500
"""Most calls of one caller whose requests gRPC waits for. It waits as long as their connections last."""


class Caller(NamedTuple):
    """Whose calls are counted together."""

    kind: str
    """What it is, such as ``user``."""
    name: str


class AwaitedRequest:
    """A call whose request gRPC awaits. It counts until the request is there or gRPC drops the call.

    gRPC does not report a call that its caller gives up before: it drops the handler that it has for it.
    """

    def __init__(self, others: WeakSet[AwaitedRequest] | None) -> None:
        self._others = others
        if others is not None:
            others.add(self)

    def end(self) -> None:
        """Notes that the request is there."""
        if self._others is not None:
            self._others.discard(self)
            self._others = None


class CallersCalls:
    """Counts the calls of a server by caller: those in progress, and those whose requests gRPC awaits.

    gRPC hands over a call with one request when the request is there, and waits for it without an end.
    Meanwhile the call occupies one of the server's places. A caller may have some such calls; the server
    awaits the requests of all others itself.
    """

    def __init__(self) -> None:
        self._open: Counter[Caller] = Counter()
        self._awaited: WeakValueDictionary[Caller, WeakSet[AwaitedRequest]] = WeakValueDictionary()

    @contextmanager
    def counted(self, caller: Caller | None) -> Iterator[None]:
        """Counts a call until the block ends.

        Args:
            caller: Who calls; None for calls that are not counted.

        Raises:
            QuotaError: The caller has as many calls in progress as one may have.
        """
        if caller is None:
            yield
            return
        if self._open[caller] >= MOST_CALLS_OF_CALLER:
            raise QuotaError(
                f"the {caller.kind} {caller.name} has {MOST_CALLS_OF_CALLER} calls in progress, as many as "
                "one may have at a server; wait for some of them"
            )
        self._open[caller] += 1
        try:
            yield
        finally:
            self._open[caller] -= 1
            if self._open[caller] <= 0:
                del self._open[caller]

    def await_request(self, caller: Caller | None) -> AwaitedRequest | None:
        """Counts one more call whose request gRPC awaits.

        Args:
            caller: Who calls, by a token that was verified before; None for calls that are not counted.

        Returns:
            The call, which its handler must hold; None if the caller has as many as one may have.
        """
        if caller is None:
            return AwaitedRequest(None)
        awaited = self._awaited.get(caller)
        if awaited is None:
            awaited = self._awaited[caller] = WeakSet()
        return AwaitedRequest(awaited) if len(awaited) < MOST_AWAITED_OF_CALLER else None


def caller_of(principal: Principal, address: str) -> Caller | None:
    """Whose calls are counted together.

    Args:
        principal: Who calls.
        address: Where from.

    Returns:
        The caller; None for a service, which passes on the calls of many.
    """
    if isinstance(principal, ServiceAccount):
        return None
    if isinstance(principal, TrialRun):
        return Caller("run", principal.allocation_id)
    if isinstance(principal, User):
        return Caller("user", principal.name)
    return Caller("address", address)
