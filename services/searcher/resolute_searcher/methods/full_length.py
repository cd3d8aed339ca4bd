"""Independent trials, trained to the full length, with limited concurrency: `single`, `random` and `grid`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto
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
from resolute_searcher.log.reasons import Reason, ReasonKind
from resolute_searcher.methods.base import Sampler
from resolute_searcher.methods.length_extension import LengthExtension
from resolute_searcher.spec.space import Json


class Refused(Enum):
    """The treatment of a trial whose hyperparameters were refused."""

    REPLACED = auto()
    """Another trial takes its place."""
    DROPPED = auto()
    """It counts as created, and nothing of it as trained."""
    COMPLETE = auto()
    """It counts as if it had trained to the full length."""


class FullLengthSearch:
    """Keeps a number of trials alive until all are created.

    Args:
        max_length: Length to train to; None if trials end by themselves.
        max_trials: Number of trials.
        max_concurrent_trials: Most trials alive at once; 0 for no limit.
        hparams: Returns the hyperparameters of a trial by the number of trials before it; None to sample
            them.
        refused: Treatment of trials whose hyperparameters were refused.
    """

    def __init__(
        self,
        *,
        max_length: int | None,
        max_trials: int,
        max_concurrent_trials: int,
        hparams: Callable[[int], dict[str, Json]] | None = None,
        refused: Refused = Refused.REPLACED,
    ) -> None:
        self._max_length = max_length
        self._max_trials = max_trials
        self._max_concurrent_trials = max_concurrent_trials
        self._hparams = hparams
        self._refused = refused
        self._counted = 0
        self._finished = 0
        self._open: dict[str, None] = {}
        # Whether the trial that closes was refused. No state: nothing of it outlives its event.
        self._replaces = False
        self._length_extension = LengthExtension()

    def absorb(self, event: MethodEvent) -> None:
        """Counts trials that ended."""
        match event:
            case TrialExited(trial_key, reason):
                self._exit(trial_key, reason)
            case TrialClosed(trial_key):
                # A trial that was refused is no longer open, and makes room for its replacement.
                self._replaces = trial_key not in self._open
                if not self._replaces:
                    del self._open[trial_key]
                    self._finished += 1
                    self._length_extension.end(trial_key)
            case Retried(trial_key):
                self._open[trial_key] = None
                self._finished -= 1
                self._length_extension.retry(trial_key)
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
                    yield from self._trial(sampler, ReasonKind.INITIAL_TRIAL)
            case TrialClosed():
                why = ReasonKind.REPLACEMENT if self._replaces else ReasonKind.FREE_SLOT
                yield from self._next(sampler, why)
            case Retried(trial_key) if self._max_length is not None:
                # An extension may have come after it left.
                yield ValidateAfter(trial_key, self._max_length, Reason(ReasonKind.TRIAL_RETRIED))
            case Extended():
                while len(self._open) < self._initial_trials and self._has_more:
                    yield from self._next(sampler, ReasonKind.SEARCH_EXTENDED)

    def apply(self, operation: MethodOperation) -> None:
        """Counts created and closed trials."""
        if isinstance(operation, Create):
            self._counted += 1
            self._open[operation.trial_key] = None
        elif isinstance(operation, ValidateAfter) and self._length_extension.dequeue(operation.trial_key):
            self._open[operation.trial_key] = None
            self._finished -= 1

    def progress(self, reached: Mapping[str, float]) -> float:
        """Returns the ratio of trained to planned units."""
        full = self._max_length or 1
        trained = self._finished * full + sum(min(reached.get(trial, 0.0), full) for trial in self._open)
        return trained / (full * self._max_trials)

    def snapshot(self) -> dict[str, Any]:
        """Returns the counts and the open trials."""
        return {
            "counted": self._counted,
            "finished": self._finished,
            "open": list(self._open),
        } | self._length_extension.snapshot()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores the counts and the open trials from a snapshot."""
        self._counted = state["counted"]
        self._finished = state["finished"]
        self._open = dict.fromkeys(state["open"])
        self._length_extension.restore(state)

    def _exit(self, trial_key: str, reason: ExitReason) -> None:
        """Counts a trial that exited before it was closed."""
        if not reason.invalid or self._refused is Refused.COMPLETE or trial_key not in self._open:
            self._length_extension.leave(trial_key)
            return
        del self._open[trial_key]
        if self._refused is Refused.REPLACED:
            self._counted -= 1

    @property
    def _initial_trials(self) -> int:
        return min(self._max_trials, self._max_concurrent_trials or self._max_trials)

    @property
    def _has_more(self) -> bool:
        return self._length_extension.waits or self._counted < self._max_trials

    def _next(self, sampler: Sampler, why: ReasonKind) -> Iterator[MethodOperation]:
        if self._length_extension.waits and self._max_length is not None:
            yield from self._length_extension.next(self._max_length)
        elif self._counted < self._max_trials:
            yield from self._trial(sampler, why)

    def _trial(self, sampler: Sampler, why: ReasonKind) -> Iterator[MethodOperation]:
        hparams = self._hparams(self._counted) if self._hparams else None
        created = sampler.create(Reason(why), hparams=hparams)
        yield created
        if self._max_length is not None:
            yield ValidateAfter(created.trial_key, self._max_length, Reason(ReasonKind.FIRST_LENGTH))
            yield Close(created.trial_key, Reason(ReasonKind.MAX_LENGTH_REACHED))
