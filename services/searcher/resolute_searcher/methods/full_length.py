"""What random and grid search share: independent trials, each trained to the full length, some at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from resolute_searcher.log.events import (
    ExitReason,
    Extended,
    MethodEvent,
    Retried,
    Started,
    TrialClosed,
    TrialExited,
)
from resolute_searcher.log.operations import Close, Create, MethodOperation, ValidateAfter
from resolute_searcher.methods.base import Sampler
from resolute_searcher.methods.length_extension import LengthExtension


class FullLengthSearch(ABC):
    """Keeps a number of trials alive until all are created; subclasses choose the hyperparameters.

    Args:
        max_length: Length to train to; None when trials themselves know when they are done.
        max_trials: Number of trials.
        max_concurrent_trials: Trials alive at once; 0 is no limit.
    """

    def __init__(self, *, max_length: int | None, max_trials: int, max_concurrent_trials: int) -> None:
        self._max_length = max_length
        self._max_trials = max_trials
        self._max_concurrent_trials = max_concurrent_trials
        self._counted = 0
        self._finished = 0
        self._open: dict[str, None] = {}
        self._length_extension = LengthExtension()

    @abstractmethod
    def create_trial(self, sampler: Sampler) -> Create:
        """Makes the next trial."""

    def on_exit(self, request_id: str, reason: ExitReason) -> None:
        """Notes a trial that left before it was closed."""
        self._length_extension.leave(request_id)

    def absorb(self, event: MethodEvent) -> None:
        """Counts ends."""
        match event:
            case TrialExited(request_id, reason):
                self.on_exit(request_id, reason)
            case TrialClosed(request_id) if request_id in self._open:
                del self._open[request_id]
                self._finished += 1
                self._length_extension.end(request_id)
            case Retried(request_id):
                self._open[request_id] = None
                self._finished -= 1
                self._length_extension.retry(request_id)
            case Extended(max_trials, max_length):
                self._max_trials = max_trials or self._max_trials
                if max_length is not None:
                    self._max_length = max_length
                    self._length_extension.extend()

    def decide(self, event: MethodEvent, sampler: Sampler) -> Iterator[MethodOperation]:
        """Creates the initial trials; afterwards each trial that ends makes room for one more."""
        match event:
            case Started():
                for _ in range(self._initial_trials):
                    yield from self._trial(sampler)
            case TrialClosed():
                yield from self._next(sampler)
            case Retried(request_id) if self._max_length is not None:
                # An extension may have come after it left.
                yield ValidateAfter(request_id, self._max_length)
            case Extended():
                while len(self._open) < self._initial_trials and self._has_more:
                    yield from self._next(sampler)

    def apply(self, operation: MethodOperation) -> None:
        """Counts trials."""
        if isinstance(operation, Create):
            self._counted += 1
            self._open[operation.request_id] = None
        elif isinstance(operation, ValidateAfter) and self._length_extension.dequeue(operation.request_id):
            self._open[operation.request_id] = None
            self._finished -= 1

    def progress(self, reached: Mapping[str, float]) -> float:
        """Gives trained over planned units."""
        full = self._max_length or 1
        trained = self._finished * full + sum(min(reached.get(trial, 0.0), full) for trial in self._open)
        return trained / (full * self._max_trials)

    def snapshot(self) -> dict[str, Any]:
        """Gives the counts and the open trials."""
        return {
            "counted": self._counted,
            "finished": self._finished,
            "open": list(self._open),
        } | self._length_extension.snapshot()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replaces the counts and the open trials by a snapshot's."""
        self._counted = state["counted"]
        self._finished = state["finished"]
        self._open = dict.fromkeys(state["open"])
        self._length_extension.restore(state)

    @property
    def _initial_trials(self) -> int:
        return min(self._max_trials, self._max_concurrent_trials or self._max_trials)

    @property
    def _has_more(self) -> bool:
        return self._length_extension.waits or self._counted < self._max_trials

    def _next(self, sampler: Sampler) -> Iterator[MethodOperation]:
        if self._length_extension.waits and self._max_length is not None:
            yield from self._length_extension.next(self._max_length)
        elif self._counted < self._max_trials:
            yield from self._trial(sampler)

    def _trial(self, sampler: Sampler) -> Iterator[MethodOperation]:
        created = self.create_trial(sampler)
        yield created
        if self._max_length is not None:
            yield ValidateAfter(created.request_id, self._max_length)
            yield Close(created.request_id)
