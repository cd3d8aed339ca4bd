"""Asynchronous successive halving of trials without operations: validation reports decide which stop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from resolute_searcher.log.events import (
    Extended,
    MethodEvent,
    Retried,
    Started,
    TrialClosed,
    TrialExited,
    ValidationReported,
)
from resolute_searcher.log.operations import Create, MethodOperation, Promote, Stop
from resolute_searcher.log.reasons import Reason, ReasonKind
from resolute_searcher.methods.base import Sampler
from resolute_searcher.methods.successive_halving.rung import Rung
from resolute_searcher.methods.successive_halving.rung_reasons import rung_reason
from resolute_searcher.spec.halving import WORST, Halving


@dataclass(slots=True)
class _RunningTrial:
    """A running trial.

    Attributes:
        rung: The next rung to reach.
        stopped: Whether the search stopped it.
        exited: Reason of its own exit, if it exited by itself.
    """

    rung: int = 0
    stopped: bool = False
    exited: bool = False

    @property
    def over(self) -> bool:
        return self.stopped or self.exited


class TimedHalvingSearch:
    """Stops a trial at the first rung where it is not among the best so far, and at the top rung.

    A rung is reached by the first validation whose time is not below the rung's length; one validation can
    reach several.

    Args:
        halving: The bracket; its lengths are values of the time metric.
    """

    def __init__(self, halving: Halving) -> None:
        self._halving = halving
        self._rungs = [self._rung() for _ in range(halving.num_rungs)]
        # The top rung before the newest extension. No state: it serves to decide upon that alone.
        self._old_top = halving.top
        self._trials: dict[str, _RunningTrial] = {}
        self._invalid = 0
        self._ended = 0
        # The report that is being decided upon; no state, since nothing of it outlives its event.
        self._report: ValidationReported | None = None

    def absorb(self, event: MethodEvent) -> None:
        """Adds a metric to the next rung of its trial, if the trial has reached that rung."""
        self._report = None
        match event:
            case ValidationReported(trial_key):
                if not self._trials[trial_key].over:  # reports of a trial on its way out are late
                    self._report = event
                    self._reach_rung(event)
            case TrialExited(trial_key, reason):
                self._exit(trial_key, invalid=reason.invalid)
            case TrialClosed():
                self._ended += 1
            case Retried(trial_key):
                self._retry(trial_key)
            case Extended(max_trials, max_length):
                self._extend(max_trials, max_length)

    def decide(self, event: MethodEvent, sampler: Sampler) -> Iterator[MethodOperation]:
        """Stops the trial that reported, if it is not in the top; creates another for each that ends."""
        match event:
            case Started():
                for _ in range(self._halving.initial_trials):
                    yield sampler.create(Reason(ReasonKind.INITIAL_TRIAL, bracket=0))
            case ValidationReported(trial_key) if self._report is not None:
                yield from self._on_validation(trial_key, sampler)
            case TrialExited(trial_key, reason) if reason.invalid:
                yield sampler.create(Reason(ReasonKind.REPLACEMENT, bracket=0))
            case TrialExited(trial_key) if not self._trials[trial_key].stopped:
                yield from self._next_trial(sampler)
            case TrialClosed(trial_key) if not self._trials[trial_key].over:
                # It was done with its training before a rung ended it.
                yield from self._next_trial(sampler)
            case Extended():
                yield from self._on_extension(sampler)

    def apply(self, operation: MethodOperation) -> None:
        """Updates trials and rungs."""
        match operation:
            case Create(trial_key):
                self._trials[trial_key] = _RunningTrial()
            case Promote(trial_key, rung):
                trial = self._trials[trial_key]
                trial.rung = rung
                if trial.stopped:
                    trial.stopped = False
                    self._ended -= 1
                if self._report is not None:
                    self._reach_rung(self._report)
            case Stop(trial_key):
                self._trials[trial_key].stopped = True

    def progress(self, reached: Mapping[str, float]) -> float:
        """Returns the share of trials that reached the bottom rung or ended, then of those that ended."""
        ended = self._ended - self._invalid
        return self._halving.progress(at_bottom=max(len(self._rungs[0]), ended), ended=ended)

    def snapshot(self) -> dict[str, Any]:
        """Returns the rungs and the trials; trials are many, so their fields have no names."""
        return {
            "rungs": [rung.snapshot() for rung in self._rungs],
            "trials": {
                trial_key: [trial.rung, int(trial.stopped), int(trial.exited)]
                for trial_key, trial in self._trials.items()
            },
            "invalid": self._invalid,
            "ended": self._ended,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores the rungs and the trials."""
        for rung, entries in zip(self._rungs, state["rungs"], strict=True):
            rung.restore(entries)
        self._trials = {
            trial_key: _RunningTrial(rung=rung, stopped=bool(stopped), exited=bool(exited))
            for trial_key, (rung, stopped, exited) in state["trials"].items()
        }
        self._invalid = state["invalid"]
        self._ended = state["ended"]

    def _rung(self) -> Rung:
        return Rung(self._halving.divisor, at_least=1, newest_first=True)

    def _extend(self, max_trials: int | None, max_length: int | None) -> None:
        self._old_top = self._halving.top
        self._halving = self._halving.extended(max_trials=max_trials, max_length=max_length)
        self._rungs += [self._rung() for _ in range(self._halving.top - self._old_top)]

    def _on_extension(self, sampler: Sampler) -> Iterator[MethodOperation]:
        """Continues the best trials of the old top rung, and creates trials up to the concurrency."""
        if self._old_top < self._halving.top:
            for entry in self._rungs[self._old_top].best():
                trial = self._trials[entry.trial_key]
                if trial.stopped and not trial.exited:
                    why = self._reason(ReasonKind.SEARCH_EXTENDED, entry.trial_key, self._old_top)
                    yield Promote(entry.trial_key, self._old_top + 1, why)
        open_trials = sum(not trial.over for trial in self._trials.values())
        counted = len(self._trials) - self._invalid
        new = min(self._halving.initial_trials - open_trials, self._halving.max_trials - counted)
        for _ in range(new):
            yield sampler.create(Reason(ReasonKind.SEARCH_EXTENDED, bracket=0))

    def _retry(self, trial_key: str) -> None:
        trial = self._trials[trial_key]
        self._rungs[trial.rung].remove(trial_key)
        trial.exited = False
        self._ended -= 1

    def _reach_rung(self, report: ValidationReported) -> None:
        rung = self._trials[report.trial_key].rung
        if report.time >= self._halving.length(rung):
            self._rungs[rung].insert(report.trial_key, self._halving.cost(report.metric))

    def _on_validation(self, trial_key: str, sampler: Sampler) -> Iterator[MethodOperation]:
        trial = self._trials[trial_key]
        while trial_key in self._rungs[trial.rung]:
            at_top = trial.rung == self._halving.top
            if at_top or not self._rungs[trial.rung].in_top(trial_key):
                kind = ReasonKind.MAX_LENGTH_REACHED if at_top else ReasonKind.BELOW_TOP_OF_RUNG
                yield Stop(trial_key, self._reason(kind, trial_key, trial.rung))
                yield from self._next_trial(sampler)
                return
            why = self._reason(ReasonKind.TOP_OF_RUNG, trial_key, trial.rung)
            yield Promote(trial_key, trial.rung + 1, why)

    def _exit(self, trial_key: str, *, invalid: bool) -> None:
        trial = self._trials[trial_key]
        if invalid:
            for rung in self._rungs:
                rung.remove(trial_key)
            self._invalid += 1
        elif not trial.stopped:
            self._rungs[trial.rung].insert(trial_key, WORST)
        trial.exited = True

    def _next_trial(self, sampler: Sampler) -> Iterator[MethodOperation]:
        if len(self._trials) - self._invalid < self._halving.max_trials:
            yield sampler.create(Reason(ReasonKind.FREE_SLOT, bracket=0))

    def _reason(self, kind: ReasonKind, trial_key: str, number: int) -> Reason:
        rung = self._rungs[number]
        return rung_reason(kind, self._halving, rung, number=number, trial_key=trial_key)
