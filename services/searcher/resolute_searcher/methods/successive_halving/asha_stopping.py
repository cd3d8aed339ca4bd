"""Asynchronous successive halving by stopping: a trial ends at a rung unless it is among the best there."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import Any

from resolute_searcher.log.events import (
    Extended,
    MethodEvent,
    Started,
    TrialExited,
    ValidationCompleted,
)
from resolute_searcher.log.operations import Close, Create, MethodOperation, ValidateAfter
from resolute_searcher.log.reasons import Reason, ReasonKind
from resolute_searcher.methods.base import Sampler
from resolute_searcher.methods.successive_halving.bracket import BracketState
from resolute_searcher.methods.successive_halving.new_trial import new_trial
from resolute_searcher.methods.successive_halving.rung import Rung
from resolute_searcher.methods.successive_halving.rung_reasons import rung_reason
from resolute_searcher.spec.halving import Halving


class StoppingHalvingSearch:
    """Continues a trial while it is among the best so far on its rung.

    Args:
        halving: The bracket.
    """

    def __init__(self, halving: Halving) -> None:
        self._halving = halving
        # The first report on a rung always continues, and the newest of equals stands first.
        self._bracket = BracketState([self._rung() for _ in range(halving.num_rungs)])
        # The top rung before the newest extension. No state: it serves to decide upon that alone.
        self._old_top = halving.top

    def absorb(self, event: MethodEvent) -> None:
        """Adds metrics to rungs."""
        self._bracket.record(event, self._halving)
        if isinstance(event, Extended):
            self._extend(event.max_trials, event.max_length)

    def decide(self, event: MethodEvent, sampler: Sampler) -> Iterator[MethodOperation]:
        """Continues or closes the trial that reported; creates another for each that ends."""
        match event:
            case Started():
                for _ in range(self._halving.initial_trials):
                    yield from new_trial(self._halving, sampler, ReasonKind.INITIAL_TRIAL)
            case ValidationCompleted(trial_key):
                if not (yield from self._continue(trial_key)):
                    yield from self._next_trial(sampler)
            case TrialExited(trial_key, reason) if reason.invalid:
                if not self._bracket.trials[trial_key].closed:
                    yield Close(trial_key, Reason(ReasonKind.INVALID_HYPERPARAMETERS, bracket=0))
                yield from new_trial(self._halving, sampler, ReasonKind.REPLACEMENT)
            case TrialExited(trial_key) if self._bracket.trials[trial_key].exited_pending:
                # Unlike with promotion, a trial that exited never rises.
                yield from self._next_trial(sampler)
            case Extended():
                yield from self._on_extension(sampler)

    def apply(self, operation: MethodOperation) -> None:
        """Updates trials and rungs."""
        match operation:
            case Create(trial_key):
                self._bracket.begin(trial_key)
            case ValidateAfter(trial_key):
                self._bracket.assign(trial_key)
            case Close(trial_key):
                self._bracket.close(trial_key)

    def progress(self, reached: Mapping[str, float]) -> float:
        """Returns the share of trials that reported at the bottom, then of those that ended."""
        bracket = self._bracket
        return self._halving.progress(at_bottom=len(bracket.rungs[0]), ended=bracket.ended_and_counted)

    def snapshot(self) -> dict[str, Any]:
        """Returns the rungs and the trials as JSON values."""
        return self._bracket.snapshot()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores the rungs and the trials."""
        self._bracket.restore(state)

    def _rung(self) -> Rung:
        return Rung(self._halving.divisor, at_least=1, newest_first=True)

    def _extend(self, max_trials: int | None, max_length: int | None) -> None:
        self._old_top = self._halving.top
        self._halving = self._halving.extended(max_trials=max_trials, max_length=max_length)
        self._bracket.extend([self._rung() for _ in range(self._halving.top - self._old_top)])

    def _on_extension(self, sampler: Sampler) -> Iterator[MethodOperation]:
        """Continues the best trials of the old top rung, and creates trials up to the concurrency."""
        if self._old_top < self._halving.top:
            for entry in self._bracket.rungs[self._old_top].best():
                if self._bracket.trials[entry.trial_key].extendable:
                    reason = self._reason(ReasonKind.SEARCH_EXTENDED, entry.trial_key, self._old_top)
                    yield ValidateAfter(entry.trial_key, self._halving.length(self._old_top + 1), reason)
        while (
            sum(self._bracket.outstanding) < self._halving.initial_trials
            and self._bracket.counted < self._halving.max_trials
        ):
            yield from new_trial(self._halving, sampler, ReasonKind.SEARCH_EXTENDED)

    def _continue(self, trial_key: str) -> Generator[MethodOperation, None, bool]:
        rung = self._bracket.trials[trial_key].rung
        if rung < self._halving.top and self._bracket.rungs[rung].in_top(trial_key):
            reason = self._reason(ReasonKind.TOP_OF_RUNG, trial_key, rung)
            yield ValidateAfter(trial_key, self._halving.length(rung + 1), reason)
            return True
        at_top = rung == self._halving.top
        kind = ReasonKind.MAX_LENGTH_REACHED if at_top else ReasonKind.BELOW_TOP_OF_RUNG
        yield Close(trial_key, self._reason(kind, trial_key, rung))
        return False

    def _next_trial(self, sampler: Sampler) -> Iterator[MethodOperation]:
        if self._bracket.counted < self._halving.max_trials:
            yield from new_trial(self._halving, sampler, ReasonKind.FREE_SLOT)

    def _reason(self, kind: ReasonKind, trial_key: str, number: int) -> Reason:
        rung = self._bracket.rungs[number]
        return rung_reason(kind, self._halving, rung, number=number, trial_key=trial_key)
