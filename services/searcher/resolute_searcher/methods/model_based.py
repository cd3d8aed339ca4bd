"""A search whose hyperparameters are chosen by a model of earlier results, outside of the search.

The search requests suggestions, and each answer is an event of its log. So a log can be replayed without the
model, and a newer version of the model does not change running searches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from resolute_searcher.log.events import (
    Extended,
    MethodEvent,
    Started,
    Suggested,
    TrialClosed,
    TrialExited,
    ValidationCompleted,
)
from resolute_searcher.log.operations import Close, Create, MethodOperation, ValidateAfter
from resolute_searcher.log.reasons import Reason, ReasonKind
from resolute_searcher.methods.base import Observation, Sampler, SuggestionRequest
from resolute_searcher.methods.successive_halving.bracket import BracketState
from resolute_searcher.methods.successive_halving.new_trial import new_trial
from resolute_searcher.methods.successive_halving.rung import Rung
from resolute_searcher.methods.successive_halving.rung_reasons import rung_reason
from resolute_searcher.spec.halving import Halving
from resolute_searcher.spec.space import Json

COMPLETE, PRUNED, FAILED = "complete", "pruned", "failed"
"""How trials end for the model."""


class ModelSearch:
    """Keeps a number of trials alive, with suggested hyperparameters; stops those not among the best.

    A suggestion is requested when there is room for a trial, and depends only on the facts at that event. So
    the answer is the same however long it takes and whatever events occur before it.

    Args:
        halving: The rungs; one for trials that all train to the full length.
        sampler_config: The sampler with its settings.
        seed: The search's seed.
    """

    def __init__(self, halving: Halving, *, sampler_config: dict[str, Json], seed: int) -> None:
        self._halving = halving
        self._sampler_config = sampler_config
        self._seed = seed
        self._bracket = BracketState([self._rung() for _ in range(halving.num_rungs)])
        self._old_top = halving.top
        # The facts of which each open question may know the first so many.
        self._open: deque[int] = deque()
        self._facts: list[Observation] = []
        self._suggestions: list[tuple[dict[str, Json], Json]] = []
        self._numbers: dict[str, int] = {}
        self._notes: Json = None

    @property
    def open_requests(self) -> int:
        """The number of suggestions that it waits for."""
        return len(self._open)

    def suggestion_request(self) -> SuggestionRequest | None:
        """Returns the oldest open request for a suggestion."""
        if not self._open:
            return None
        return SuggestionRequest(
            number=len(self._suggestions) + 1,
            seed=self._seed,
            sampler_config=self._sampler_config,
            smaller_is_better=self._halving.smaller_is_better,
            earlier=tuple(self._suggestions),
            facts=tuple(self._facts[: self._open[0]]),
        )

    def absorb(self, event: MethodEvent) -> None:
        """Adds metrics to rungs and requests suggestions for new trials."""
        self._bracket.record(event, self._halving)
        match event:
            case ValidationCompleted(trial_key, metric, length):
                self._facts.append((self._numbers[trial_key], length, metric))
            case TrialExited(trial_key):
                self._facts.append((self._numbers[trial_key], None, FAILED))
            case Extended(max_trials, max_length):
                self._extend(max_trials, max_length)
            case Suggested(_, _, notes):
                self._open.popleft()
                self._notes = notes
        if isinstance(event, Started | TrialClosed | Extended):
            self._request_suggestions()

    def decide(self, event: MethodEvent, sampler: Sampler) -> Iterator[MethodOperation]:
        """Creates the suggested trial; continues or closes other trials."""
        match event:
            case Suggested(_, hparams):
                yield from new_trial(self._halving, sampler, ReasonKind.SUGGESTED, hparams=hparams)
            case ValidationCompleted(trial_key):
                rung = self._bracket.trials[trial_key].rung
                if rung < self._halving.top and self._bracket.rungs[rung].in_top(trial_key):
                    why = self._reason(ReasonKind.TOP_OF_RUNG, trial_key, rung)
                    yield ValidateAfter(trial_key, self._halving.length(rung + 1), why)
                else:
                    at_top = rung == self._halving.top
                    kind = ReasonKind.MAX_LENGTH_REACHED if at_top else ReasonKind.BELOW_TOP_OF_RUNG
                    yield Close(trial_key, self._reason(kind, trial_key, rung))
            case TrialExited(trial_key, reason) if reason.invalid:
                if not self._bracket.trials[trial_key].closed:
                    yield Close(trial_key, Reason(ReasonKind.INVALID_HYPERPARAMETERS, bracket=0))
            case Extended() if self._old_top < self._halving.top:
                for entry in self._bracket.rungs[self._old_top].best():
                    if self._bracket.trials[entry.trial_key].extendable:
                        why = self._reason(ReasonKind.SEARCH_EXTENDED, entry.trial_key, self._old_top)
                        yield ValidateAfter(entry.trial_key, self._halving.length(self._old_top + 1), why)

    def apply(self, operation: MethodOperation) -> None:
        """Updates trials and rungs."""
        match operation:
            case Create(trial_key, hparams):
                self._numbers[trial_key] = len(self._suggestions)
                self._suggestions.append((hparams, self._notes))
                self._bracket.begin(trial_key)
            case ValidateAfter(trial_key):
                self._bracket.assign(trial_key)
            case Close(trial_key):
                trial = self._bracket.trials[trial_key]
                self._bracket.close(trial_key)
                if not trial.exited:
                    how = COMPLETE if trial.rung == self._halving.top else PRUNED
                    self._facts.append((self._numbers[trial_key], None, how))

    def progress(self, reached: Mapping[str, float]) -> float:
        """Returns the fraction of trials that ended."""
        return self._bracket.ended_and_counted / self._halving.max_trials

    def snapshot(self) -> dict[str, Any]:
        """Returns the rungs, the trials, and the data of requests for suggestions."""
        return self._bracket.snapshot() | {
            "open": list(self._open),
            # As text, since JSON has neither NaN nor infinities.
            "facts": [
                [number, length, repr(what) if isinstance(what, float) else what]
                for number, length, what in self._facts
            ],
            "suggestions": [list(suggestion) for suggestion in self._suggestions],
            "numbers": dict(self._numbers),
            "notes": self._notes,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores the rungs, the trials, and the data of requests for suggestions."""
        self._bracket.restore(state)
        self._open = deque(state["open"])
        self._facts = [
            (number, None, what) if length is None else (number, length, float(what))
            for number, length, what in state["facts"]
        ]
        self._suggestions = [(hparams, notes) for hparams, notes in state["suggestions"]]
        self._numbers = dict(state["numbers"])
        self._notes = state["notes"]

    def _rung(self) -> Rung:
        return Rung(self._halving.divisor, at_least=1, newest_first=True)

    def _extend(self, max_trials: int | None, max_length: int | None) -> None:
        self._old_top = self._halving.top
        self._halving = self._halving.extended(max_trials=max_trials, max_length=max_length)
        self._bracket.extend([self._rung() for _ in range(self._halving.top - self._old_top)])

    def _request_suggestions(self) -> None:
        """Requests as many suggestions as trials may be added."""
        alive = len(self._bracket.trials) - self._bracket.ended
        asked = len(self._open)
        room = self._halving.initial_trials - alive - asked
        left = self._halving.max_trials - self._bracket.counted - asked
        for _ in range(min(room, left)):
            self._open.append(len(self._facts))

    def _reason(self, kind: ReasonKind, trial_key: str, number: int) -> Reason:
        rung = self._bracket.rungs[number]
        return rung_reason(kind, self._halving, rung, number=number, trial_key=trial_key)
