"""The state of one search: its counts, its trials, and its method with the method's own state."""

from __future__ import annotations

from collections import deque
from typing import Any

from resolute.errors import NotFoundError
from resolute_searcher.engine.trial import TrialState
from resolute_searcher.log.events import Extended
from resolute_searcher.methods.base import ModelMethod, Sampler, SuggestionRequest
from resolute_searcher.methods.registry import kind_of
from resolute_searcher.rng import RandomStream
from resolute_searcher.spec.search import SearchSpec


class SearchState:
    """What is known of a search; `Search` changes it by events.

    Args:
        spec: What to search; checked.
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
        self._failures = 0
        self._cancels = 0
        self._method = self.kind.build(spec)
        self._model = self._method if isinstance(self._method, ModelMethod) else None
        self._sampler = Sampler(spec.space, RandomStream(spec.seed))
        self._draws = 0
        self._extensions: list[Extended] = []
        # Trials that were given the very length that they completed before.
        self._repeats: list[str] = []
        # Positions of the events at which the open requests for suggestions were made.
        self._requested_at: deque[int] = deque()
        # How far open trials say they are. No state: nothing is decided by it.
        self._reached: dict[str, float] = {}

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

    def repeats(self, trial_key: str) -> bool:
        """Returns whether a trial was given the very length that it completed before."""
        return trial_key in self._repeats

    @property
    def requested_at(self) -> int | None:
        """Position of the event at which the oldest open request for a suggestion was made."""
        return self._requested_at[0] if self._requested_at else None

    @property
    def awaits_suggestion(self) -> bool:
        """Whether the search waits for a suggestion."""
        return self._model is not None and self._model.open_requests > 0

    def suggestion_request(self) -> SuggestionRequest | None:
        """Returns what a `Suggested` event must answer next; None when the search waits for nothing."""
        return None if self._model is None else self._model.suggestion_request()

    def progress(self) -> float:
        """Returns the done share of the whole search, from 0 to 1."""
        return min(max(self._method.progress(self._reached), 0.0), 1.0)

    def reach(self, trial_key: str, progress: float) -> None:
        """Notes how far an open trial says it is; a trial that ended is not listened to.

        Args:
            trial_key: The trial.
            progress: Absolute length, or share in searches without operations; NaN counts as 0.

        Raises:
            NotFoundError: The search did not ask for such a trial.
        """
        if not self.trial(trial_key).ended:
            self._reached[trial_key] = max(progress, 0.0) if progress == progress else 0.0  # noqa: PLR0124

    def reached(self, trial_key: str) -> float:
        """Returns how far a trial said it is; 0 when it said nothing."""
        return self._reached.get(trial_key, 0.0)

    def all_reached(self) -> list[tuple[str, float]]:
        """Returns how far the open trials say they are."""
        return list(self._reached.items())

    def snapshot(self) -> dict[str, Any]:
        """Returns the whole state as JSON values; equal logs give equal snapshots."""
        return {
            "sequence": self.sequence,
            "last_action": self.last_action,
            "requested": self.requested,
            "closed": self.closed,
            "failures": self._failures,
            "cancels": self._cancels,
            "over": self.over,
            "answered": self.answered,
            "suggested": self.suggested,
            "extensions": [[one.max_trials, one.max_length] for one in self._extensions],
            "draws": self._draws,
            "repeats": list(self._repeats),
            "requested_at": list(self._requested_at),
            "trials": {trial_key: trial.to_json() for trial_key, trial in self.trials.items()},
            "method": self._method.snapshot(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Replaces the whole state by a snapshot's."""
        self.sequence = state["sequence"]
        self.last_action = state["last_action"]
        self.requested = state["requested"]
        self.closed = state["closed"]
        self._failures = state["failures"]
        self._cancels = state["cancels"]
        self.over = state["over"]
        self.answered = state["answered"]
        self.suggested = state["suggested"]
        for max_trials, max_length in state["extensions"]:
            self._extend(Extended(max_trials, max_length))
            self._method.absorb(self._extensions[-1])
        self._draws = state["draws"]
        self.trials = {
            trial_key: TrialState.from_json(fields) for trial_key, fields in state["trials"].items()
        }
        self._repeats = list(state["repeats"])
        self._requested_at = deque(state["requested_at"])
        self._method.restore(state["method"])
        self._sampler = Sampler(self.spec.space, RandomStream(self.spec.seed, self._draws))

    def _extend(self, event: Extended) -> None:
        self._extensions.append(event)
        for field, now in (("max_trials", event.max_trials), ("max_length", event.max_length)):
            if now is not None:
                self.limits[field] = now
