"""The state of one search: its counts, its trials, and its method with the method's own state."""

from __future__ import annotations

from collections import deque
from typing import Any

from resolute.errors import NotFoundError
from resolute_searcher.log.events import Extended
from resolute_searcher.methods.base import Sampler, SuggestionRequest
from resolute_searcher.methods.model_based import ModelSearch
from resolute_searcher.methods.registry import kind_of
from resolute_searcher.rng import RandomStream
from resolute_searcher.spec.search import SearchSpec
from resolute_searcher.state_machine.trial import TrialState

MOST_REFUSED_IN_A_ROW = 50
"""After so many refused sets of hyperparameters in a row none is replaced: the fault is in the code."""


class SearchState:
    """The state of a search: counts, trials and the method. `Search` changes it by events.

    Args:
        spec: The checked spec.
    """

    def __init__(self, spec: SearchSpec) -> None:
        self.spec = spec
        self.kind = kind_of(spec)
        self.sequence = 0
        self.last_action = 0
        self.requested = 0
        self.closed = 0
        self.over = False
        # Last event that the client of a custom search answered, and last suggestion that was taken.
        self.answered = 0
        self.suggested = 0
        # What extensions raise.
        self.limits: dict[str, int | None] = {
            field: getattr(spec.method, field, None) for field in ("max_trials", "max_length")
        }
        self.trials: dict[str, TrialState] = {}
        self.failures = 0
        self.cancels = 0
        # Trials that left because their hyperparameters were refused, since the last one that did not.
        self.refused_in_a_row = 0
        self.method = self.kind.build(spec)
        self.model = self.method if isinstance(self.method, ModelSearch) else None
        self.sampler = Sampler(spec.space, RandomStream(spec.seed))
        self.draws = 0
        self.extensions: list[Extended] = []
        # Trials that were given the very length that they completed before.
        self.repeated: list[str] = []
        # Positions of the events at which the open requests for suggestions were made.
        self.open_requests: deque[int] = deque()
        # How far open trials say they are. No state: nothing is decided by it.
        self.reached_by_trial: dict[str, float] = {}

    def trial(self, trial_key: str) -> TrialState:
        """Returns a trial's state, for reading.

        Raises:
            NotFoundError: The search did not ask for such a trial.
        """
        try:
            return self.trials[trial_key]
        except KeyError:
            raise NotFoundError(
                f"trial {trial_key} is not of this search; use the key that its create action named",
                resource=f"trial {trial_key}",
            ) from None

    @property
    def requested_at(self) -> int | None:
        """Position of the event that made the oldest open request for a suggestion."""
        return self.open_requests[0] if self.open_requests else None

    @property
    def refused_too_often(self) -> bool:
        """Whether refused trials are not replaced until a running trial has validated."""
        return self.refused_in_a_row >= MOST_REFUSED_IN_A_ROW

    @property
    def awaits_suggestion(self) -> bool:
        """Whether the search waits for a suggestion."""
        return self.model is not None and self.model.open_requests > 0 and not self.refused_too_often

    def suggestion_request(self) -> SuggestionRequest | None:
        """Returns the request that the next `Suggested` event must answer; None without one."""
        return self.model.suggestion_request() if self.model is not None and self.awaits_suggestion else None

    def progress(self) -> float:
        """Returns the progress of the whole search, from 0 to 1."""
        return min(max(self.method.progress(self.reached_by_trial), 0.0), 1.0)

    def reach(self, trial_key: str, progress: float) -> None:
        """Stores the reported progress of an open trial; ignores that of an ended one.

        Args:
            trial_key: The trial.
            progress: Absolute length, or share in searches without operations; NaN counts as 0.

        Raises:
            NotFoundError: The search did not ask for such a trial.
        """
        if not self.trial(trial_key).ended:
            self.reached_by_trial[trial_key] = max(progress, 0.0) if progress == progress else 0.0  # noqa: PLR0124

    def reached(self, trial_key: str) -> float:
        """Returns the reported progress of a trial; 0 without a report."""
        return self.reached_by_trial.get(trial_key, 0.0)

    def snapshot(self) -> dict[str, Any]:
        """Returns the whole state as JSON values; equal logs give equal snapshots."""
        return {
            "sequence": self.sequence,
            "last_action": self.last_action,
            "requested": self.requested,
            "closed": self.closed,
            "failures": self.failures,
            "cancels": self.cancels,
            "refused_in_a_row": self.refused_in_a_row,
            "over": self.over,
            "answered": self.answered,
            "suggested": self.suggested,
            "extensions": [[extension.max_trials, extension.max_length] for extension in self.extensions],
            "draws": self.draws,
            "repeats": list(self.repeated),
            "requested_at": list(self.open_requests),
            "trials": {trial_key: trial.to_json() for trial_key, trial in self.trials.items()},
            "method": self.method.snapshot(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restores the whole state from a snapshot."""
        self.sequence = state["sequence"]
        self.last_action = state["last_action"]
        self.requested = state["requested"]
        self.closed = state["closed"]
        self.failures = state["failures"]
        self.cancels = state["cancels"]
        self.refused_in_a_row = state.get("refused_in_a_row", 0)  # absent in snapshots of earlier versions
        self.over = state["over"]
        self.answered = state["answered"]
        self.suggested = state["suggested"]
        for max_trials, max_length in state["extensions"]:
            self.extend(Extended(max_trials, max_length))
            self.method.absorb(self.extensions[-1])
        self.draws = state["draws"]
        self.trials = {
            trial_key: TrialState.from_json(fields) for trial_key, fields in state["trials"].items()
        }
        self.repeated = list(state["repeats"])
        self.open_requests = deque(state["requested_at"])
        self.method.restore(state["method"])
        self.sampler = Sampler(self.spec.space, RandomStream(self.spec.seed, self.draws))

    def extend(self, event: Extended) -> None:
        """Raises limits, and records the extension."""
        self.extensions.append(event)
        for field, now in (("max_trials", event.max_trials), ("max_length", event.max_length)):
            if now is not None:
                self.limits[field] = now
