"""Asynchronous successive halving by stopping: a trial that is not among the best of its rung ends there."""

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
from resolute_searcher.log.operations import Close, Create, MethodOperation, ValidateAfter
from resolute_searcher.methods.base import Sampler
from resolute_searcher.methods.successive_halving.bracket import BracketState
from resolute_searcher.methods.successive_halving.rung import Rung
from resolute_searcher.spec.halving import Halving


class StoppingHalvingSearch:
    """Lets a trial train on while it is among the best that reported so far on its rung.

    Args:
        halving: The bracket.
    """

    def __init__(self, halving: Halving) -> None:
        self._halving = halving
        # The first report on a rung always goes on, and the newest of equals stands first.
        self._bracket = BracketState([self._rung() for _ in range(halving.num_rungs)])
        # The top rung before the newest extension. No state: it serves to decide upon that alone.
        self._old_top = halving.top

    def absorb(self, event: MethodEvent) -> None:
        """Puts metrics on rungs."""
        match event:
            case ValidationCompleted(request_id, metric):
                self._bracket.report(request_id, self._halving.cost(metric))
            case TrialExited(request_id, reason) if reason.invalid:
                self._bracket.forget(request_id)
            case TrialExited(request_id):
                self._bracket.record_exit(request_id)
            case TrialClosed():
                self._bracket.ended += 1
            case Retried(request_id):
                self._bracket.retry(request_id)
            case Extended(max_trials, max_length):
                self._extend(max_trials, max_length)

    def decide(self, event: MethodEvent, sampler: Sampler) -> Iterator[MethodOperation]:
        """Continues or closes the trial that reported; one that ends makes room for another."""
        match event:
            case Started():
                for _ in range(self._halving.initial_trials):
                    yield from self._trial(sampler)
            case ValidationCompleted(request_id):
                if not (yield from self._continue(request_id)):
                    yield from self._next_trial(sampler)
            case TrialExited(request_id, reason) if reason.invalid:
                if not self._bracket.trials[request_id].closed:
                    yield Close(request_id)
                yield from self._trial(sampler)
            case TrialExited(request_id) if self._bracket.trials[request_id].exited_pending:
                # Unlike with promotion, a trial that exited never rises.
                yield from self._next_trial(sampler)
            case Extended():
                yield from self._on_extension(sampler)

    def apply(self, operation: MethodOperation) -> None:
        """Moves trials."""
        match operation:
            case Create(request_id):
                self._bracket.begin(request_id)
            case ValidateAfter(request_id):
                self._bracket.assign(request_id)
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

    def _rung(self) -> Rung:
        return Rung(self._halving.divisor, at_least=1, newest_first=True)

    def _extend(self, max_trials: int | None, max_length: int | None) -> None:
        self._old_top = self._halving.top
        self._halving = self._halving.extended(max_trials=max_trials, max_length=max_length)
        self._bracket.extend([self._rung() for _ in range(self._halving.top - self._old_top)])

    def _on_extension(self, sampler: Sampler) -> Iterator[MethodOperation]:
        """Lets the best of the old top train on, and begins trials up to the concurrency."""
        if self._old_top < self._halving.top:
            for entry in self._bracket.rungs[self._old_top].best():
                if self._bracket.trials[entry.request_id].extendable:
                    yield ValidateAfter(entry.request_id, self._halving.length(self._old_top + 1))
        while (
            sum(self._bracket.outstanding) < self._halving.initial_trials
            and self._bracket.counted < self._halving.max_trials
        ):
            yield from self._trial(sampler)

    def _continue(self, request_id: str) -> Generator[MethodOperation, None, bool]:
        rung = self._bracket.trials[request_id].rung
        if rung < self._halving.top and self._bracket.rungs[rung].in_top(request_id):
            yield ValidateAfter(request_id, self._halving.length(rung + 1))
            return True
        yield Close(request_id)
        return False

    def _next_trial(self, sampler: Sampler) -> Iterator[MethodOperation]:
        if self._bracket.counted < self._halving.max_trials:
            yield from self._trial(sampler)

    def _trial(self, sampler: Sampler) -> Iterator[MethodOperation]:
        created = sampler.create()
        yield created
        yield ValidateAfter(created.request_id, self._halving.length(0))
