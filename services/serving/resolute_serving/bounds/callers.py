"""Limits the number of calls in progress of one user, of one run, and of one address of strangers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from resolute.errors import QuotaError
from resolute_serving.context import Principal, ServiceAccount, TrialRun, User

MOST_CALLS_OF_CALLER = 4_000
"""Calls in progress of one caller at one server, streams among them."""
MOST_AWAITED_OF_CALLER = 500
"""Calls of one caller whose requests gRPC may await, for as long as their connections are there."""


class _Caller(NamedTuple):
    kind: str
    name: str


class CallersCalls:
    """Counts the calls of a server by caller: those in progress, and those whose requests gRPC awaits.

    gRPC hands over a call with one request when the request is there, and waits for it without an end.
    Meanwhile the call occupies one of the server's places. A caller may have some such calls; the server
    awaits the requests of all others itself.
    """

    def __init__(self) -> None:
        self._open: Counter[_Caller] = Counter()
        self._awaited: Counter[_Caller] = Counter()

    @contextmanager
    def counted(self, principal: Principal, address: str) -> Iterator[None]:
        """Counts a call until the block ends.

        Args:
            principal: Who calls.
            address: Where from.

        Raises:
            QuotaError: The caller has as many calls in progress as one may have.
        """
        caller = _caller(principal, address)
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
            _decrement(self._open, caller)

    def may_await(self, principal: Principal) -> bool:
        """Whether gRPC may await the request of one more call, which counts until ``note_request``.

        A call that its caller gives up before counts for good: gRPC does not report it.

        Args:
            principal: Who calls, by a token that was verified before.
        """
        caller = _caller(principal, "")
        if caller is None:
            return True
        if self._awaited[caller] >= MOST_AWAITED_OF_CALLER:
            return False
        self._awaited[caller] += 1
        return True

    def note_request(self, principal: Principal) -> None:
        """Notes that gRPC has received the request of a call."""
        caller = _caller(principal, "")
        if caller is not None:
            _decrement(self._awaited, caller)


def _caller(principal: Principal, address: str) -> _Caller | None:
    """Whose calls are counted together; None for a service, which passes on the calls of many."""
    if isinstance(principal, ServiceAccount):
        return None
    if isinstance(principal, TrialRun):
        return _Caller("run", principal.allocation_id)
    if isinstance(principal, User):
        return _Caller("user", principal.name)
    return _Caller("address", address)


def _decrement(counts: Counter[_Caller], caller: _Caller) -> None:
    counts[caller] -= 1
    if counts[caller] <= 0:
        del counts[caller]
