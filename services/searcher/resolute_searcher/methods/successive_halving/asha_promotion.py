"""Asynchronous successive halving by promotion: trials rest on their rung until they are among its best."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import Any

from resolute_searcher.log.events import (
    Extended,
    MethodEvent,
    Retried,
    Started,
    TrialClosed,
    TrialExited,
    ValidationCompleted,
)
from resolute_searcher.log.operations import Close, Create, MethodOperation, Promote, ValidateAfter
from resolute_searcher.methods.base import Sampler
from resolute_searcher.methods.successive_halving.bracket import BracketState
from resolute_searcher.methods.successive_halving.rung import Rung
from resolute_searcher.spec.halving import Halving


class AsyncHalvingSearch:
    """Promotes the best share of each rung, also trials that rested there for long.

    Args:
        halving: The bracket.
    """

    def __init__(self, halving: Halving) -> None:
        self._halving = halving
        self._bracket = BracketState([Rung(halving.divisor) for _ in range(halving.num_rungs)])
        # Nobody works or rests on the rungs below this one. Not state, only a memo of how far the last look
        # came.
        self._closed_out = 0

    def absorb(self, event: MethodEvent) -> None:
        """Puts metrics on rungs."""
        match event:
            case ValidationCompleted(request_id, metric):
                self._bracket.report(request_id, self._halving.cost(metric))
            case TrialExited(request_id, reason) if reason.invalid:
                self._bracket.forget(request_id)
                self._closed_out = 0
            case TrialExited(request_id):
                self._bracket.record_exit(request_id)
            case TrialClosed():
                self._bracket.ended += 1
            case Retried(request_id):
                self._bracket.retry(request_id)
                self._closed_out = 0
            case Extended(max_trials, max_length):
                self._extend(max_trials, max_length)

    def decide(self, event: MethodEvent, sampler: Sampler) -> Iterator[MethodOperation]:
        """Promotes, or else begins another trial; closes what can rise no more."""
        match event:
            case Started():
                for _ in range(self._halving.initial_trials):
                    yield from self._trial(sampler)
            case ValidationCompleted(request_id):
                yield from self._on_validation(request_id, sampler)
            case TrialExited(request_id, reason) if reason.invalid:
                if not self._bracket.trials[request_id].closed:
                    yield Close(request_id)
                yield from self._trial(sampler)
            case TrialExited(request_id) if self._bracket.trials[request_id].exited_pending:
                yield from self._on_validation(request_id, sampler)
            case Retried(request_id):
                yield from self._on_retry(request_id)
            case Extended():
                yield from self._on_extension(sampler)

    def apply(self, operation: MethodOperation) -> None:
        """Moves trials."""
        match operation:
            case Create(request_id):
                self._bracket.begin(request_id)
            case ValidateAfter(request_id):
                self._bracket.assign(request_id)
            case Promote(request_id, rung):
                self._bracket.promote(request_id, rung)
            case Close(request_id):
                self._bracket.close(request_id)

    def progress(self, reached: Mapping[str, float]) -> float:
        """Gives the share of trials that reported at the bottom, then of those that ended."""
        bracket = self._bracket
        return self._halving.progress(at_bottom=len(bracket.rungs[0]), ended=bracket.ended_and_counted)

    def snapshot(self) -> dict[str, Any]:
        """Gives the rungs and the trials."""
        return self._bracket.snapshot()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes over the rungs and the trials."""
        self._bracket.restore(state)
        self._closed_out = 0

    def _trial(self, sampler: Sampler) -> Iterator[MethodOperation]:
        created = sampler.create()
        yield created
        yield ValidateAfter(created.request_id, self._halving.length(0))

    def _on_validation(self, request_id: str, sampler: Sampler) -> Iterator[MethodOperation]:
        trains = yield from self._promote(request_id)
        if not trains and self._bracket.counted < self._halving.max_trials:
            yield from self._trial(sampler)
        if len(self._bracket.rungs[0]) == self._halving.max_trials:
            yield from self._close_out()

    def _promote(self, request_id: str) -> Generator[MethodOperation, None, bool]:
        """Promotes what a report allows; tells whether that gives a trial something to train."""
        trials = self._bracket.trials
        rung = trials[request_id].rung
        if rung == self._halving.top:
            if not trials[request_id].closed:
                yield Close(request_id)
            return False
        promoted = self._candidate(request_id, rung)
        # A promoted trial that exited trains nothing: it reports the worst metric on the next rung, at once.
        while promoted is not None and trials[promoted].exited:
            rung += 1
            yield Promote(promoted, rung)
            promoted = self._candidate(promoted, rung) if rung < self._halving.top else None
        if promoted is None:
            return False
        yield ValidateAfter(promoted, self._halving.length(rung + 1))
        return True

    def _candidate(self, newest: str, number: int) -> str | None:
        """Gives the trial that the newest report on a rung lets rise: itself, or one it made room for."""
        rung = self._bracket.rungs[number]
        if rung.in_top(newest):
            return newest
        promoted = rung.last_of_top() if rung.top_grew() else None
        if promoted is None or self._bracket.trials[promoted].rung > number:
            return None
        trial = self._bracket.trials[promoted]
        # A rung can reopen after it was closed out, when a refused trial is replaced; who left then stays
        # out.
        return None if trial.out else promoted

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
        """Promotes whom the extension makes room for, and begins trials up to the concurrency."""
        for number in range(self._halving.top):
            for entry in self._bracket.rungs[number].best():
                trial = self._bracket.trials[entry.request_id]
                if trial.rung == number and trial.extendable:
                    yield ValidateAfter(entry.request_id, self._halving.length(number + 1))
        while (
            sum(self._bracket.outstanding) < self._halving.initial_trials
            and self._bracket.counted < self._halving.max_trials
        ):
            yield from self._trial(sampler)

    def _on_retry(self, request_id: str) -> Iterator[MethodOperation]:
        """Promotes a trial that left while it rested, if it stands among the best by now."""
        trial = self._bracket.trials[request_id]
        if trial.pending:
            return
        if trial.rung < self._halving.top and self._bracket.rungs[trial.rung].in_top(request_id):
            yield ValidateAfter(request_id, self._halving.length(trial.rung + 1))
        elif len(self._bracket.rungs[0]) == self._halving.max_trials:
            yield from self._close_out()

    def _close_out(self) -> Iterator[MethodOperation]:
        """Closes the trials that rest on rungs where no report can change anything any more."""
        for number in range(self._closed_out, self._halving.top + 1):
            if self._bracket.outstanding[number]:
                return
            for entry in self._bracket.rungs[number]:
                trial = self._bracket.trials[entry.request_id]
                if trial.rung == number and not trial.closed:
                    yield Close(entry.request_id)
            self._closed_out = number + 1
