"""The trials of a bracket that trains by operations, and their rungs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resolute_searcher.log.events import (
    MethodEvent,
    Retried,
    TrialClosed,
    TrialExited,
    ValidationCompleted,
)
from resolute_searcher.methods.successive_halving.rung import Rung
from resolute_searcher.spec.halving import WORST, Halving


@dataclass(slots=True)
class BracketTrial:
    """A trial of a bracket.

    Attributes:
        rung: The rung that it trains to or last reported to; -1 before it has work.
        pending: Whether it has an incomplete operation.
        exited: Whether it exited before it was closed.
        exited_pending: Whether it exited with an incomplete operation.
        closed: Whether it gets no more work.
        extendable: Whether an extension may give it work again although it was closed.
        exit_rung: The rung at which it exited; -1 if it did not exit.
    """

    rung: int = -1
    pending: bool = False
    exited: bool = False
    exited_pending: bool = False
    closed: bool = False
    extendable: bool = False
    exit_rung: int = -1

    @property
    def out(self) -> bool:
        """Whether it cannot be promoted any more, except after an exit, with the worst metric."""
        return self.closed and not self.exited and not self.extendable


class BracketState:
    """The states of all trials of a bracket.

    Args:
        rungs: The rungs, empty, from the bottom up.
    """

    def __init__(self, rungs: Sequence[Rung]) -> None:
        self.rungs = list(rungs)
        self.outstanding = [0] * len(self.rungs)
        self.trials: dict[str, BracketTrial] = {}
        self.invalid = 0
        self.ended = 0

    @property
    def counted(self) -> int:
        """The number of created trials, without those whose hyperparameters were refused."""
        return len(self.trials) - self.invalid

    @property
    def ended_and_counted(self) -> int:
        """The number of ended trials, without those whose hyperparameters were refused."""
        return self.ended - self.invalid

    def record(self, event: MethodEvent, halving: Halving) -> None:
        """Updates trials and rungs with an event of a trial. Other events change nothing here."""
        match event:
            case ValidationCompleted(trial_key, metric):
                self._report(trial_key, halving.cost(metric))
            case TrialExited(trial_key, reason) if reason.invalid:
                self._forget(trial_key)
            case TrialExited(trial_key):
                self._record_exit(trial_key)
            case TrialClosed():
                self.ended += 1
            case Retried(trial_key):
                self._retry(trial_key)

    def begin(self, trial_key: str) -> None:
        """Adds a trial without work."""
        self.trials[trial_key] = BracketTrial()

    def assign(self, trial_key: str) -> None:
        """Gives a trial the work of its next rung."""
        trial = self.trials[trial_key]
        trial.rung += 1
        trial.pending = True
        if trial.extendable:
            trial.extendable = trial.closed = False
            self.ended -= 1
        self.outstanding[trial.rung] += 1

    def extend(self, rungs: Sequence[Rung]) -> None:
        """Adds rungs at the top; closed trials may be promoted again."""
        self.rungs += rungs
        self.outstanding += [0] * len(rungs)
        for trial in self.trials.values():
            trial.extendable = trial.closed and not trial.exited

    def promote(self, trial_key: str, rung: int) -> None:
        """Moves a trial that has exited to a higher rung."""
        self.trials[trial_key].rung = rung
        self.rungs[rung].insert(trial_key, WORST)

    def close(self, trial_key: str) -> None:
        """Marks a trial that gets no more work."""
        self.trials[trial_key].closed = True

    def snapshot(self) -> dict[str, Any]:
        """Returns the whole state as JSON values; many trials, so lists without field names."""
        return {
            "rungs": [rung.snapshot() for rung in self.rungs],
            "trials": {
                trial_key: [
                    trial.rung,
                    trial.exit_rung,
                    *map(
                        int,
                        (trial.pending, trial.exited, trial.exited_pending, trial.closed, trial.extendable),
                    ),
                ]
                for trial_key, trial in self.trials.items()
            },
            "invalid": self.invalid,
            "ended": self.ended,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores the whole state from a snapshot."""
        for rung, entries in zip(self.rungs, state["rungs"], strict=True):
            rung.restore(entries)
        self.trials = {
            trial_key: BracketTrial(
                rung,
                bool(pending),
                bool(exited),
                bool(exited_pending),
                bool(closed),
                bool(extendable),
                exit_rung,
            )
            for trial_key, (rung, exit_rung, pending, exited, exited_pending, closed, extendable) in state[
                "trials"
            ].items()
        }
        self.invalid = state["invalid"]
        self.ended = state["ended"]
        self.outstanding = [0] * len(self.rungs)
        for trial in self.trials.values():
            if trial.pending:
                self.outstanding[trial.rung] += 1

    def _report(self, trial_key: str, cost: float) -> None:
        """Adds the metric of a trial's work to its rung."""
        trial = self.trials[trial_key]
        self._clear_pending(trial)
        self.rungs[trial.rung].insert(trial_key, cost)

    def _retry(self, trial_key: str) -> None:
        """Restores a trial that exited early: to its unfinished work, or to its pause on a rung."""
        trial = self.trials[trial_key]
        # What it was given while it was gone disappears: the worst metric, there and on all rungs above.
        for rung in self.rungs[trial.exit_rung + (not trial.exited_pending) :]:
            rung.remove(trial_key)
        trial.rung, trial.exit_rung = trial.exit_rung, -1
        trial.pending = trial.exited_pending
        trial.exited = trial.exited_pending = trial.closed = False
        if trial.pending:
            self.outstanding[trial.rung] += 1
        self.ended -= 1

    def _record_exit(self, trial_key: str) -> None:
        """Marks a trial as exited; its unfinished work gets the worst metric."""
        trial = self.trials[trial_key]
        trial.exited = trial.closed = True
        trial.exited_pending = trial.pending
        trial.exit_rung = trial.rung
        if trial.pending:
            self._report(trial_key, WORST)

    def _forget(self, trial_key: str) -> None:
        """Removes a trial and its reports: its hyperparameters were refused."""
        trial = self.trials[trial_key]
        trial.exited = True
        if trial.pending:
            self._clear_pending(trial)
        for rung in self.rungs:
            rung.remove(trial_key)
        self.invalid += 1

    def _clear_pending(self, trial: BracketTrial) -> None:
        trial.pending = False
        self.outstanding[trial.rung] -= 1
