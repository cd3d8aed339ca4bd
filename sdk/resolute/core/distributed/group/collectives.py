"""The collectives of one group: which ranks have contributed, which are missing, and what each receives.

It is plain state without sockets or clocks. The hub passes messages to it and sends the messages that it
returns.
"""

import enum
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from resolute.core.distributed import errors
from resolute.core.distributed.group.membership import Membership
from resolute.core.distributed.transport.bundle import Bundle, Part
from resolute.core.distributed.transport.messages import Op
from resolute.core.distributed.transport.payload import Frame

logger = logging.getLogger(__name__)

ROOT = 0
FIRST_WARNING = 60.0


class Cause(enum.Enum):
    """The kind of failure that ended a group."""

    LOST = "lost"
    CLOSED = "closed"
    TIMEOUT = "timeout"
    ORDER = "order"
    INTERNAL = "internal"


_ERRORS: dict[Cause, type[errors.CollectiveError]] = {
    Cause.LOST: errors.PeerLostError,
    Cause.CLOSED: errors.PeerClosedError,
    Cause.TIMEOUT: errors.CollectiveTimeoutError,
    Cause.ORDER: errors.CollectiveOrderError,
    Cause.INTERNAL: errors.CollectiveError,
}


@dataclass(frozen=True)
class Termination:
    """The end of a group, after which all its collectives fail.

    Attributes:
        cause: The kind of failure.
        text: The message for people.
        ranks: The job's ranks at fault.
    """

    cause: Cause
    text: str
    ranks: tuple[int, ...] = ()

    def error(self) -> errors.CollectiveError:
        """The error to raise for it, new each time."""
        return _ERRORS[self.cause](self.text, ranks=self.ranks)

    def to_fields(self) -> dict[str, Any]:
        """As it travels."""
        return {"cause": self.cause.value, "text": self.text, "ranks": list(self.ranks)}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> "Termination":
        """As it arrived.

        Raises:
            MalformedFrameError: It is not complete.
        """
        try:
            ranks = tuple(int(rank) for rank in fields["ranks"])
            return cls(Cause(fields["cause"]), str(fields["text"]), ranks)
        except (KeyError, TypeError, ValueError) as error:
            raise errors.MalformedFrameError(f"an ABORT message cannot be read: {error}") from None


@dataclass(frozen=True)
class CollectiveResult:
    """The result of a collective for one member."""

    member: int
    op: Op
    serial: int
    frames: tuple[Frame, ...] = ()


@dataclass
class _PendingCollective:
    op: Op
    opened_by: int
    opened_at: float
    warn_after: float
    arrived: set[int] = field(default_factory=set)
    parts: dict[int, Part] = field(default_factory=dict)


class PendingCollectives:
    """Runs the collectives of a group, in the order of their serials.

    Args:
        membership: The members.
        timeout: Seconds that a collective may wait for its slowest member; None waits forever.
    """

    def __init__(self, membership: Membership, *, timeout: float | None) -> None:
        self._membership = membership
        self._timeout = timeout
        self._everyone = frozenset(range(len(membership)))
        self._serials = dict.fromkeys(self._everyone, 0)
        self._open: dict[int, _PendingCollective] = {}
        self._left: set[int] = set()
        self.termination: Termination | None = None

    @property
    def undelivered(self) -> set[int]:
        """Members that a broadcast was sent to and that have not asked for it yet.

        None once the group failed: no rank takes it then.
        """
        if self.termination is not None and self.termination.cause is not Cause.CLOSED:
            return set()
        return {member for pending in self._open.values() for member in self._undelivered_members(pending)}

    def contribute(
        self, member: int, *, serial: int, op: Op, part: Part, now: float
    ) -> list[CollectiveResult]:
        """Takes a member's part of a collective; returns what can now be delivered."""
        if self.termination is not None:
            if serial in self._open:
                self._open[serial].arrived.add(member)
            return []
        expected = self._serials[member] + 1
        if serial != expected or op is Op.NONE:
            self.end(
                Cause.ORDER,
                f"a message is out of order: {self._membership.describe([member])} sent number {serial} "
                f"({op.call}) where number {expected} was due",
                [member],
            )
            return []
        self._serials[member] = serial
        pending = self._open.get(serial)
        if pending is None:
            pending = _PendingCollective(op, member, now, FIRST_WARNING)
            self._open[serial] = pending
        if pending.op is not op:
            self.end(
                Cause.ORDER,
                f"the ranks disagree about collective number {serial}: "
                f"{self._membership.describe([pending.opened_by])} called {pending.op.call} and "
                f"{self._membership.describe([member])} called {op.call}. "
                "Every rank must make the same calls in the same order",
                [pending.opened_by, member],
            )
            return []
        pending.arrived.add(member)
        if op is not Op.BROADCAST or member == ROOT:
            pending.parts[member] = part
        self._terminate_if_member_left(pending)
        return self._advance(serial, pending, member)

    def leave(self, member: int) -> None:
        """A member closed its context."""
        self._left.add(member)
        if self.termination is not None:
            return
        if member == ROOT:
            self.end(
                Cause.CLOSED, f"{self._membership.describe([ROOT])} closed its DistributedContext", [ROOT]
            )
        for pending in list(self._open.values()):
            self._terminate_if_member_left(pending)

    def mark_lost(self, member: int) -> None:
        """The connection to a member broke. After it left, that is expected."""
        if self.termination is not None or member in self._left:
            self._left.add(member)
            return
        waits = self._describe_waiting()
        self._left.add(member)
        self.end(
            Cause.LOST,
            f"{self._membership.describe([member])} is gone: its process ended or its host cannot be reached"
            f"{waits}. Its own log says why",
            [member],
        )

    def end(self, cause: Cause, text: str, members: Iterable[int]) -> None:
        """Ends the group, unless it ended before: the first cause is the one to tell."""
        if self.termination is None:
            self.termination = Termination(cause, text, self._membership.job_ranks(members))
            for pending in self._open.values():
                pending.parts.clear()

    def tick(self, now: float) -> None:
        """Warns of slow members, and ends the group when one is too slow."""
        for serial, pending in list(self._open.items()):
            silent = self._missing_members(pending)
            waited = now - pending.opened_at
            if not silent or self.termination is not None:
                continue
            who = self._membership.describe(silent)
            if self._timeout is not None and waited >= self._timeout:
                self.end(
                    Cause.TIMEOUT,
                    f"{who} did not come to {pending.op.call} (collective number {serial}) "
                    f"within {self._timeout:g} s",
                    silent,
                )
            elif waited >= pending.warn_after:
                logger.warning("%s has waited %.0f s for %s", pending.op.call, waited, who)
                pending.warn_after *= 2

    def next_deadline(self) -> float | None:
        """When `tick` has something to do at the earliest; None while no rank is waited for."""
        deadlines: list[float] = []
        if self.termination is not None:
            return None
        for pending in self._open.values():
            if self._missing_members(pending):
                wait = pending.warn_after if self._timeout is None else min(pending.warn_after, self._timeout)
                deadlines.append(pending.opened_at + wait)
        return min(deadlines, default=None)

    def _advance(self, serial: int, pending: _PendingCollective, member: int) -> list[CollectiveResult]:
        if self.termination is not None:
            return []
        if pending.op is Op.BROADCAST:
            results = self._broadcast(serial, pending) if member == ROOT else []
            if not self._undelivered_members(pending) and ROOT in pending.arrived:
                del self._open[serial]
            return results
        if pending.arrived != self._everyone:
            return []
        del self._open[serial]
        bundle = Bundle(pending.parts)
        return [
            CollectiveResult(
                receiver,
                pending.op,
                serial,
                bundle.frames_for(receiver) if pending.op is Op.ALLGATHER or receiver == ROOT else (),
            )
            for receiver in sorted(self._everyone)
        ]

    def _broadcast(self, serial: int, pending: _PendingCollective) -> list[CollectiveResult]:
        bundle = Bundle(pending.parts)
        pending.parts.clear()
        receivers = sorted(self._everyone - self._left - {ROOT})
        return [
            CollectiveResult(member, pending.op, serial, bundle.frames_for(member)) for member in receivers
        ]

    def _missing_members(self, pending: _PendingCollective) -> set[int]:
        """Whom the others wait for."""
        if pending.op is Op.BROADCAST:
            return {ROOT} - pending.arrived
        return set(self._everyone - pending.arrived)

    def _undelivered_members(self, pending: _PendingCollective) -> set[int]:
        """Who has not asked for a broadcast that was sent."""
        if pending.op is not Op.BROADCAST or ROOT not in pending.arrived:
            return set()
        return set(self._everyone - pending.arrived - self._left)

    def _terminate_if_member_left(self, pending: _PendingCollective) -> None:
        gone = self._missing_members(pending) & self._left
        if gone and self.termination is None:
            self.end(
                Cause.CLOSED,
                f"{self._membership.describe(gone)} closed its DistributedContext, or ended, "
                f"while {self._membership.describe(pending.arrived)} called {pending.op.call}. "
                "If that was an error, its own log says which",
                gone,
            )

    def _describe_waiting(self) -> str:
        for pending in self._open.values():
            if self._missing_members(pending):
                return f" (while {self._membership.describe(pending.arrived)} waited in {pending.op.call})"
        return ""
