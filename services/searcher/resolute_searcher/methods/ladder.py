"""The trials of a bracket that trains by operations, and the rungs that they stand on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resolute_searcher.methods.halving import WORST
from resolute_searcher.methods.rung import Rung


@dataclass(slots=True)
class Climber:
    """A trial on its way up.

    Attributes:
        rung: The rung that it works at or last reported to; -1 before it has work.
        pending: It has work to report.
        exited: It left before it was closed.
        fell: It left while it had work.
        closed: It gets no more work.
        parked: It was closed, but an extension may give it work again.
        fell_at: The rung of the work or the rest that it left; -1 when it did not leave.
    """

    rung: int = -1
    pending: bool = False
    exited: bool = False
    fell: bool = False
    closed: bool = False
    parked: bool = False
    fell_at: int = -1

    @property
    def out(self) -> bool:
        """Whether it can rise no more, unless it has exited and takes the worst metric along."""
        return self.closed and not self.exited and not self.parked


class Ladder:
    """Where every trial of a bracket stands.

    Args:
        rungs: The rungs, empty, from the bottom up.
    """

    def __init__(self, rungs: Sequence[Rung]) -> None:
        self.rungs = list(rungs)
        self.outstanding = [0] * len(self.rungs)
        self.climbers: dict[str, Climber] = {}
        self.invalid = 0
        self.ended = 0

    @property
    def counted(self) -> int:
        """Trials that were begun, without those whose hyperparameters were refused."""
        return len(self.climbers) - self.invalid

    @property
    def ended_and_counted(self) -> int:
        """Trials that are over, without those whose hyperparameters were refused."""
        return self.ended - self.invalid

    def begin(self, request_id: str) -> None:
        """Adds a trial, which has no work yet."""
        self.climbers[request_id] = Climber()

    def assign(self, request_id: str) -> None:
        """Gives a trial the work of the next rung."""
        climber = self.climbers[request_id]
        climber.rung += 1
        climber.pending = True
        if climber.parked:
            climber.parked = climber.closed = False
            self.ended -= 1
        self.outstanding[climber.rung] += 1

    def report(self, request_id: str, badness: float) -> None:
        """Puts the metric of a trial's work on its rung."""
        climber = self.climbers[request_id]
        self._settle(climber)
        self.rungs[climber.rung].insert(request_id, badness)

    def extend(self, rungs: Sequence[Rung]) -> None:
        """Puts rungs on top; whoever was closed may rise again."""
        self.rungs += rungs
        self.outstanding += [0] * len(rungs)
        for climber in self.climbers.values():
            climber.parked = climber.closed and not climber.exited

    def revive(self, request_id: str) -> None:
        """Takes a trial that left back: to the work that it left, or to its rest."""
        climber = self.climbers[request_id]
        # What it was given while it was gone disappears: the worst metric, there and on all rungs above.
        for rung in self.rungs[climber.fell_at + (not climber.fell) :]:
            rung.remove(request_id)
        climber.rung, climber.fell_at = climber.fell_at, -1
        climber.pending = climber.fell
        climber.exited = climber.fell = climber.closed = False
        if climber.pending:
            self.outstanding[climber.rung] += 1
        self.ended -= 1

    def lift(self, request_id: str, rung: int) -> None:
        """Puts a trial that has exited on a higher rung."""
        self.climbers[request_id].rung = rung
        self.rungs[rung].insert(request_id, WORST)

    def close(self, request_id: str) -> None:
        """Marks a trial that gets no more work."""
        self.climbers[request_id].closed = True

    def fall(self, request_id: str) -> None:
        """Takes a trial out of the race, with the worst metric for the work that it had."""
        climber = self.climbers[request_id]
        climber.exited = climber.closed = True
        climber.fell = climber.pending
        climber.fell_at = climber.rung
        if climber.pending:
            self.report(request_id, WORST)

    def forget(self, request_id: str) -> None:
        """Takes a trial out as if it had never reported: its hyperparameters were refused."""
        climber = self.climbers[request_id]
        climber.exited = True
        if climber.pending:
            self._settle(climber)
        for rung in self.rungs:
            rung.remove(request_id)
        self.invalid += 1

    def snapshot(self) -> dict[str, Any]:
        """Gives everything as JSON values; trials are many, so their fields have no names."""
        return {
            "rungs": [rung.snapshot() for rung in self.rungs],
            "trials": {
                request_id: [
                    trial.rung,
                    trial.fell_at,
                    *map(int, (trial.pending, trial.exited, trial.fell, trial.closed, trial.parked)),
                ]
                for request_id, trial in self.climbers.items()
            },
            "invalid": self.invalid,
            "ended": self.ended,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replaces everything by a snapshot's."""
        for rung, entries in zip(self.rungs, state["rungs"], strict=True):
            rung.restore(entries)
        self.climbers = {
            request_id: Climber(
                rung, bool(pending), bool(exited), bool(fell), bool(closed), bool(parked), fell_at
            )
            for request_id, (rung, fell_at, pending, exited, fell, closed, parked) in state["trials"].items()
        }
        self.invalid = state["invalid"]
        self.ended = state["ended"]
        self.outstanding = [0] * len(self.rungs)
        for climber in self.climbers.values():
            if climber.pending:
                self.outstanding[climber.rung] += 1

    def _settle(self, climber: Climber) -> None:
        climber.pending = False
        self.outstanding[climber.rung] -= 1
