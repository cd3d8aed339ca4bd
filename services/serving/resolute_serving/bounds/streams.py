"""Limits the number of open streams: of one user, of one address, and in all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from resolute.errors import InvalidArgumentError, QuotaError, ResoluteError, UnavailableError
from resolute_serving.context import Principal, ServiceAccount, TrialRun, User

_TOTAL = "RESOLUTE_STREAMS"
_ADDRESS = "RESOLUTE_STREAMS_OF_ADDRESS"
_USER = "RESOLUTE_STREAMS_OF_USER"
_MOST = 1_000_000


@dataclass(frozen=True, kw_only=True)
class StreamLimits:
    """The largest numbers of open streams. Each field names its environment variable."""

    total: int = 10_000
    """RESOLUTE_STREAMS: of all users of a server (10000). Those of runs and services do not count: signals
    reach runs whatever users watch."""
    of_address: int = 4_000
    """RESOLUTE_STREAMS_OF_ADDRESS: of one address of clients (4000)."""
    of_user: int = 1_000
    """RESOLUTE_STREAMS_OF_USER: of one user, or of one run (1000)."""

    @classmethod
    def from_environment(cls, variables: Mapping[str, str]) -> StreamLimits:
        """Reads the limits.

        Raises:
            InvalidArgumentError: A variable is wrong; the message names it.
        """
        return cls(
            total=_number(variables, _TOTAL, cls.total),
            of_address=_number(variables, _ADDRESS, cls.of_address),
            of_user=_number(variables, _USER, cls.of_user),
        )


class _Bound(NamedTuple):
    whose: tuple[str, str | int]
    most: int
    refusal: ResoluteError


class StreamCounts:
    """Counts the open streams of a server.

    Args:
        limits: Limits of open streams.
    """

    def __init__(self, limits: StreamLimits) -> None:
        self._limits = limits
        self._open: Counter[tuple[str, str | int]] = Counter()

    @contextmanager
    def counted(self, principal: Principal, address: str) -> Iterator[None]:
        """Counts a stream until the block ends.

        Args:
            principal: Who opened it.
            address: Where from.

        Raises:
            QuotaError: Its user, run or address has as many as it may.
            UnavailableError: The server has as many as it may.
        """
        bounds = self._bounds(principal, address)
        for bound in bounds:
            if self._open[bound.whose] >= bound.most:
                raise bound.refusal
        for bound in bounds:
            self._open[bound.whose] += 1
        try:
            yield
        finally:
            for bound in bounds:
                self._open[bound.whose] -= 1
                if not self._open[bound.whose]:
                    del self._open[bound.whose]

    def _bounds(self, principal: Principal, address: str) -> Sequence[_Bound]:
        limits = self._limits
        if isinstance(principal, ServiceAccount):
            return ()
        if isinstance(principal, TrialRun):
            run = ("run", principal.allocation_id)
            return (_Bound(run, limits.of_user, _too_many("the run", limits.of_user, _USER)),)
        bounds = [
            _Bound(
                ("address", address),
                limits.of_address,
                _too_many(f"the address {address}", limits.of_address, _ADDRESS),
            ),
            _Bound(
                ("all", 0),
                limits.total,
                UnavailableError(
                    f"the server has {limits.total} streams open, as many as {_TOTAL} allows; try again later"
                ),
            ),
        ]
        if isinstance(principal, User):
            user = ("user", principal.user_id or principal.name)
            refusal = _too_many(f"the user {principal.name}", limits.of_user, _USER)
            bounds.append(_Bound(user, limits.of_user, refusal))
        return bounds


def _too_many(who: str, most: int, variable: str) -> QuotaError:
    return QuotaError(
        f"{who} has {most} streams open, as many as {variable} allows: "
        "end some, or follow several objects by one stream"
    )


def _number(variables: Mapping[str, str], name: str, default: int) -> int:
    text = variables.get(name) or str(default)
    if not (text.isascii() and text.isdigit()) or not 0 < int(text) <= _MOST:
        raise InvalidArgumentError(f"{name} is {text!r}; it must be a whole number from 1 to {_MOST}")
    return int(text)
