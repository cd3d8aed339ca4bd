"""The state of one search: its counts, its trials, and its method with the method's own state."""

from __future__ import annotations

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
        self._sampler = Sampler(spec.space, RandomStream(spec.seed))
        self._draws = 0
        self._extensions: list[Extended] = []
        # Trials that were given the very length that they completed before.
        self._repeats: list[str] = []
        # How far open trials say they are. No state: nothing is decided by it.
        self._reached: dict[str, float] = {}

    def trial(self, request_id: str) -> TrialState:
        """Gives a trial's state, for reading.

        Raises:
            NotFoundError: The search did not ask for such a trial.
        """
        try:
            return self.trials[request_id]
        except KeyError:
            raise NotFoundError(
                f"trial {request_id} is not of this search; use the request id of a create action",
                resource=f"trial {request_id}",
            ) from None

    @property
    def awaits_suggestion(self) -> bool:
        """Whether the search waits for a suggestion."""
        return isinstance(self._method, ModelMethod) and self._method.awaits_suggestion

    def suggestion_request(self) -> SuggestionRequest | None:
        """Gives what a `Suggested` event must answer next; None when the search waits for nothing."""
        return self._method.suggestion_request() if isinstance(self._method, ModelMethod) else None

    def progress(self) -> float:
        """Gives the done share of the whole search, from 0 to 1."""
        return min(max(self._method.progress(self._reached), 0.0), 1.0)

    def reach(self, request_id: str, progress: float) -> None:
        """Notes how far an open trial says it is; a trial that ended is not listened to.

        Args:
            request_id: The trial.
            progress: Absolute length, or share in searches without operations; NaN counts as 0.

        Raises:
            NotFoundError: The search did not ask for such a trial.
        """
        if not self.trial(request_id).ended:
            self._reached[request_id] = max(progress, 0.0) if progress == progress else 0.0  # noqa: PLR0124

    def reached(self, request_id: str) -> float:
        """Gives how far a trial said it is; 0 when it said nothing."""
        return self._reached.get(request_id, 0.0)

    def all_reached(self) -> list[tuple[str, float]]:
        """Gives how far the open trials say they are."""
        return list(self._reached.items())

    def snapshot(self) -> dict[str, Any]:
        """Gives the whole state as JSON values; equal logs give equal snapshots."""
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
            "trials": {request_id: trial.to_json() for request_id, trial in self.trials.items()},
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
            request_id: TrialState.from_json(fields) for request_id, fields in state["trials"].items()
        }
        self._repeats = list(state["repeats"])
        self._method.restore(state["method"])
        self._sampler = Sampler(self.spec.space, RandomStream(self.spec.seed, self._draws))

    def _extend(self, event: Extended) -> None:
        self._extensions.append(event)
        for field, now in (("max_trials", event.max_trials), ("max_length", event.max_length)):
            if now is not None:
                self.limits[field] = now
