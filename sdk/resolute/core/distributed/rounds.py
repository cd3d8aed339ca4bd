"""The collectives of one star: who has contributed, who is waited for, who gets what.

Plain state without sockets or clocks. The hub feeds it, and sends what it returns.
"""

import enum
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from resolute.core.distributed import errors
from resolute.core.distributed.bundle import Bundle, Part
from resolute.core.distributed.payload import Frame
from resolute.core.distributed.roster import Roster
from resolute.core.distributed.wire import Op

logger = logging.getLogger(__name__)

CENTRE = 0
FIRST_WARNING = 60.0


class Cause(enum.Enum):
    """Why a star ended."""

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
class Ending:
    """Why no collective of this star will work any more.

    Attributes:
        cause: What kind of failure it is.
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
    def from_fields(cls, fields: dict[str, Any]) -> "Ending":
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
class Delivery:
    """The result of a collective for one member."""

    member: int
    op: Op
    serial: int
    frames: tuple[Frame, ...] = ()


@dataclass
class _Round:
    op: Op
    opened_by: int
    opened_at: float
    warn_after: float
    arrived: set[int] = field(default_factory=set)
    parts: dict[int, Part] = field(default_factory=dict)


class Rounds:
    """Runs the collectives of a star, in the order of their serials.

    Args:
        roster: The members.
        timeout: Seconds that a collective may wait for its slowest member; None waits for ever.
    """

    def __init__(self, roster: Roster, *, timeout: float | None) -> None:
        self._roster = roster
        self._timeout = timeout
        self._everyone = frozenset(range(len(roster)))
        self._serials = dict.fromkeys(self._everyone, 0)
        self._open: dict[int, _Round] = {}
        self._left: set[int] = set()
        self.ending: Ending | None = None

    @property
    def unheard(self) -> set[int]:
        """Members that a broadcast was sent to and that have not asked for it yet.

        None once the star failed: nobody will take it then.
        """
        if self.ending is not None and self.ending.cause is not Cause.CLOSED:
            return set()
        return {member for round_ in self._open.values() for member in self._late(round_)}

    def contribute(self, member: int, *, serial: int, op: Op, part: Part, now: float) -> list[Delivery]:
        """Takes a member's part of a collective; returns what can now be delivered."""
        if self.ending is not None:
            if serial in self._open:
                self._open[serial].arrived.add(member)
            return []
        expected = self._serials[member] + 1
        if serial != expected or op is Op.NONE:
            self.end(
                Cause.ORDER,
                f"a message is out of order: {self._roster.describe([member])} sent number {serial} "
                f"({op.call}) where number {expected} was due",
                [member],
            )
            return []
        self._serials[member] = serial
        round_ = self._open.get(serial)
        if round_ is None:
            round_ = _Round(op, member, now, FIRST_WARNING)
            self._open[serial] = round_
        if round_.op is not op:
            self.end(
                Cause.ORDER,
                f"the ranks disagree about collective number {serial}: "
                f"{self._roster.describe([round_.opened_by])} called {round_.op.call} and "
                f"{self._roster.describe([member])} called {op.call}. "
                "Every rank must make the same calls in the same order",
                [round_.opened_by, member],
            )
            return []
        round_.arrived.add(member)
        if op is not Op.BROADCAST or member == CENTRE:
            round_.parts[member] = part
        self._end_if_someone_left(round_)
        return self._advance(serial, round_, member)

    def leave(self, member: int) -> None:
        """A member closed its context."""
        self._left.add(member)
        if self.ending is not None:
            return
        if member == CENTRE:
            self.end(
                Cause.CLOSED, f"{self._roster.describe([CENTRE])} closed its DistributedContext", [CENTRE]
            )
        for round_ in list(self._open.values()):
            self._end_if_someone_left(round_)

    def lose(self, member: int) -> None:
        """The connection to a member broke. After it left, that is expected."""
        if self.ending is not None or member in self._left:
            self._left.add(member)
            return
        waits = self._waits()
        self._left.add(member)
        self.end(
            Cause.LOST,
            f"{self._roster.describe([member])} is gone: its process ended or its host cannot be reached"
            f"{waits}. Its own log says why",
            [member],
        )

    def end(self, cause: Cause, text: str, members: Iterable[int]) -> None:
        """Ends the star, unless it ended before: the first cause is the one to tell."""
        if self.ending is None:
            self.ending = Ending(cause, text, self._roster.job_ranks(members))
            for round_ in self._open.values():
                round_.parts.clear()

    def tick(self, now: float) -> None:
        """Warns of slow members, and ends the star when one is too slow."""
        for serial, round_ in list(self._open.items()):
            silent = self._silent(round_)
            waited = now - round_.opened_at
            if not silent or self.ending is not None:
                continue
            who = self._roster.describe(silent)
            if self._timeout is not None and waited >= self._timeout:
                self.end(
                    Cause.TIMEOUT,
                    f"{who} did not come to {round_.op.call} (collective number {serial}) "
                    f"within {self._timeout:g} s",
                    silent,
                )
            elif waited >= round_.warn_after:
                logger.warning("%s has waited %.0f s for %s", round_.op.call, waited, who)
                round_.warn_after *= 2

    def next_deadline(self) -> float | None:
        """When `tick` has something to do at the earliest; None while nobody is waited for."""
        deadlines: list[float] = []
        if self.ending is not None:
            return None
        for round_ in self._open.values():
            if self._silent(round_):
                wait = round_.warn_after if self._timeout is None else min(round_.warn_after, self._timeout)
                deadlines.append(round_.opened_at + wait)
        return min(deadlines, default=None)

    def _advance(self, serial: int, round_: _Round, member: int) -> list[Delivery]:
        if self.ending is not None:
            return []
        if round_.op is Op.BROADCAST:
            deliveries = self._broadcast(serial, round_) if member == CENTRE else []
            if not self._late(round_) and CENTRE in round_.arrived:
                del self._open[serial]
            return deliveries
        if round_.arrived != self._everyone:
            return []
        del self._open[serial]
        bundle = Bundle(round_.parts)
        return [
            Delivery(
                receiver,
                round_.op,
                serial,
                bundle.frames_for(receiver) if round_.op is Op.ALLGATHER or receiver == CENTRE else (),
            )
            for receiver in sorted(self._everyone)
        ]

    def _broadcast(self, serial: int, round_: _Round) -> list[Delivery]:
        bundle = Bundle(round_.parts)
        round_.parts.clear()
        receivers = sorted(self._everyone - self._left - {CENTRE})
        return [Delivery(member, round_.op, serial, bundle.frames_for(member)) for member in receivers]

    def _silent(self, round_: _Round) -> set[int]:
        """Whom the others wait for."""
        if round_.op is Op.BROADCAST:
            return {CENTRE} - round_.arrived
        return set(self._everyone - round_.arrived)

    def _late(self, round_: _Round) -> set[int]:
        """Who has not asked for a broadcast that was sent."""
        if round_.op is not Op.BROADCAST or CENTRE not in round_.arrived:
            return set()
        return set(self._everyone - round_.arrived - self._left)

    def _end_if_someone_left(self, round_: _Round) -> None:
        gone = self._silent(round_) & self._left
        if gone and self.ending is None:
            self.end(
                Cause.CLOSED,
                f"{self._roster.describe(gone)} closed its DistributedContext, or ended, "
                f"while {self._roster.describe(round_.arrived)} called {round_.op.call}. "
                "If that was an error, its own log says which",
                gone,
            )

    def _waits(self) -> str:
        for round_ in self._open.values():
            if self._silent(round_):
                return f" (while {self._roster.describe(round_.arrived)} waited in {round_.op.call})"
        return ""
