"""Asynchronous successive halving by promotion: trials pause on their rung until they are among its best."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import Any

from resolute_searcher.log.events import (
    Extended,
    MethodEvent,
    Retried,
    Started,
    TrialExited,
    ValidationCompleted,
)
from resolute_searcher.log.operations import Close, Create, MethodOperation, Promote, ValidateAfter
from resolute_searcher.log.reasons import Reason, ReasonKind
from resolute_searcher.methods.base import Sampler
from resolute_searcher.methods.successive_halving.bracket import BracketState
from resolute_searcher.methods.successive_halving.new_trial import new_trial
from resolute_searcher.methods.successive_halving.rung import Rung
from resolute_searcher.methods.successive_halving.rung_reasons import rung_reason
from resolute_searcher.spec.halving import Halving


class AsyncHalvingSearch:
    """Promotes the best share of each rung, including trials that have been paused there for a long time.

    Args:
        halving: The bracket.
    """

    def __init__(self, halving: Halving) -> None:
        self._halving = halving
        self._bracket = BracketState([Rung(halving.divisor) for _ in range(halving.num_rungs)])
        # No trial works or rests on the rungs below this one. Not state, only a memo of how far the last look
        # came.
        self._closed_out = 0

    def absorb(self, event: MethodEvent) -> None:
        """Adds metrics to rungs."""
        self._bracket.record(event, self._halving)
        match event:
            case TrialExited(reason=reason) if reason.invalid:
                self._closed_out = 0
            case Retried():
                self._closed_out = 0
            case Extended(max_trials, max_length):
                self._extend(max_trials, max_length)

    def decide(self, event: MethodEvent, sampler: Sampler) -> Iterator[MethodOperation]:
        """Promotes a trial, or creates another one; closes trials that cannot be promoted any more."""
        match event:
            case Started():
                for _ in range(self._halving.initial_trials):
                    yield from new_trial(self._halving, sampler, ReasonKind.INITIAL_TRIAL)
            case ValidationCompleted(trial_key):
                yield from self._on_validation(trial_key, sampler)
            case TrialExited(trial_key, reason) if reason.invalid:
                if not self._bracket.trials[trial_key].closed:
                    yield Close(trial_key, Reason(ReasonKind.INVALID_HYPERPARAMETERS, bracket=0))
                yield from new_trial(self._halving, sampler, ReasonKind.REPLACEMENT)
            case TrialExited(trial_key) if self._bracket.trials[trial_key].exited_pending:
                yield from self._on_validation(trial_key, sampler)
            case Retried(trial_key):
                yield from self._on_retry(trial_key)
            case Extended():
                yield from self._on_extension(sampler)

    def apply(self, operation: MethodOperation) -> None:
        """Updates trials and rungs."""
        match operation:
            case Create(trial_key):
                self._bracket.begin(trial_key)
            case ValidateAfter(trial_key):
                self._bracket.assign(trial_key)
            case Promote(trial_key, rung):
                self._bracket.promote(trial_key, rung)
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
        self._closed_out = 0

    def _on_validation(self, trial_key: str, sampler: Sampler) -> Iterator[MethodOperation]:
        trains = yield from self._promote(trial_key)
        if not trains and self._bracket.counted < self._halving.max_trials:
            yield from new_trial(self._halving, sampler, ReasonKind.FREE_SLOT)
        if len(self._bracket.rungs[0]) == self._halving.max_trials:
            yield from self._close_out()

    def _promote(self, trial_key: str) -> Generator[MethodOperation, None, bool]:
        """Promotes the trial that a report allows; returns whether it has something to train."""
        trials = self._bracket.trials
        rung = trials[trial_key].rung
        if rung == self._halving.top:
            if not trials[trial_key].closed:
                yield Close(trial_key, self._reason(ReasonKind.MAX_LENGTH_REACHED, trial_key, rung))
            return False
        promoted = self._candidate(trial_key, rung)
        # A promoted trial that exited trains nothing: it reports the worst metric on the next rung, at once.
        while promoted is not None and trials[promoted].exited:
            yield Promote(promoted, rung + 1, self._reason(ReasonKind.TOP_OF_RUNG, promoted, rung))
            rung += 1
            promoted = self._candidate(promoted, rung) if rung < self._halving.top else None
        if promoted is None:
            return False
        reason = self._reason(ReasonKind.TOP_OF_RUNG, promoted, rung)
        yield ValidateAfter(promoted, self._halving.length(rung + 1), reason)
        return True

    def _candidate(self, newest: str, number: int) -> str | None:
        """Returns the trial to promote after a report on a rung: its own, or another in the grown top."""
        rung = self._bracket.rungs[number]
        if rung.in_top(newest):
            return newest
        last = rung.last_of_top() if rung.top_grew() else None
        if last is None or self._bracket.trials[last.trial_key].rung > number:
            return None
        trial = self._bracket.trials[last.trial_key]
        # A rung can reopen after it was closed out, when a refused trial is replaced; who left then stays
        # out.
        return None if trial.out else last.trial_key

    def _extend(self, max_trials: int | None, max_length: int | None) -> None:
        before = self._halving
        self._halving = before.extended(max_trials=max_trials, max_length=max_length)
        above = self._halving.top - before.top
        if above:
            # However few stand there, the best of the old top trains on, to the very end.
            self._bracket.rungs[before.top].require(1)
        self._bracket.extend([Rung(before.divisor, at_least=1) for _ in range(above)])
        self._closed_out = 0

    def _on_extension(self, sampler: Sampler) -> Iterator[MethodOperation]:
        """Promotes trials after an extension, and creates trials up to the concurrency."""
        for number in range(self._halving.top):
            for entry in self._bracket.rungs[number].best():
                trial = self._bracket.trials[entry.trial_key]
                if trial.rung == number and trial.extendable:
                    reason = self._reason(ReasonKind.SEARCH_EXTENDED, entry.trial_key, number)
                    yield ValidateAfter(entry.trial_key, self._halving.length(number + 1), reason)
        while (
            sum(self._bracket.outstanding) < self._halving.initial_trials
            and self._bracket.counted < self._halving.max_trials
        ):
            yield from new_trial(self._halving, sampler, ReasonKind.SEARCH_EXTENDED)

    def _on_retry(self, trial_key: str) -> Iterator[MethodOperation]:
        """Promotes a retried trial that exited while paused on a rung, if it is in the top now."""
        trial = self._bracket.trials[trial_key]
        if trial.pending:
            return
        if trial.rung < self._halving.top and self._bracket.rungs[trial.rung].in_top(trial_key):
            reason = self._reason(ReasonKind.TRIAL_RETRIED, trial_key, trial.rung)
            yield ValidateAfter(trial_key, self._halving.length(trial.rung + 1), reason)
        elif len(self._bracket.rungs[0]) == self._halving.max_trials:
            yield from self._close_out()

    def _close_out(self) -> Iterator[MethodOperation]:
        """Closes paused trials on rungs that no further report can change."""
        for number in range(self._closed_out, self._halving.top + 1):
            if self._bracket.outstanding[number]:
                return
            for entry in self._bracket.rungs[number]:
                trial = self._bracket.trials[entry.trial_key]
                if trial.rung == number and not trial.closed:
                    at_top = number == self._halving.top
                    kind = ReasonKind.MAX_LENGTH_REACHED if at_top else ReasonKind.RUNG_COMPLETE
                    yield Close(entry.trial_key, self._reason(kind, entry.trial_key, number))
            self._closed_out = number + 1

    def _reason(self, kind: ReasonKind, trial_key: str, number: int) -> Reason:
        rung = self._bracket.rungs[number]
        return rung_reason(kind, self._halving, rung, number=number, trial_key=trial_key)
