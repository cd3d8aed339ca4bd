"""The base class of custom search methods."""

from __future__ import annotations

import json
import os
import uuid
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from resolute.searcher.operations import ExitedReason, Operation

STATE_FILE = "state"
"""File of a saved search that holds the `SearcherState`."""
METHOD_STATE = "method_state"
"""Directory of a saved search that belongs to the method."""


class SearcherState:
    """The state of a search's trials. The runner updates it; methods read it.

    Attributes:
        failures: Trials that failed.
        trial_progress: Progress of the open trials, by trial.
        trials_closed: Trials that have ended.
        trials_created: Trials that exist.
        last_event_id: Number of the last event that was passed to the method; 0 before the first.
        experiment_completed: Whether the search has shut down.
        experiment_failed: Whether the search has shut down as a failure.
        experiment_id: Number of the experiment; None before it was created.

    Examples:
        >>> from resolute import searcher
        >>> state = searcher.SearcherState()
        >>> state.last_event_id, state.experiment_completed
        (0, False)
    """

    def __init__(self) -> None:
        self.failures: set[uuid.UUID] = set()
        self.trial_progress: dict[uuid.UUID, float] = {}
        self.trials_closed: set[uuid.UUID] = set()
        self.trials_created: set[uuid.UUID] = set()
        self.last_event_id = 0
        self.experiment_completed = False
        self.experiment_failed = False
        self.experiment_id: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Gives everything as JSON values."""
        return {
            "failures": sorted(map(str, self.failures)),
            "trialProgress": {str(trial): progress for trial, progress in self.trial_progress.items()},
            "trialsClosed": sorted(map(str, self.trials_closed)),
            "trialsCreated": sorted(map(str, self.trials_created)),
            "lastEventId": self.last_event_id,
            "experimentId": self.experiment_id,
            "experimentCompleted": self.experiment_completed,
            "experimentFailed": self.experiment_failed,
        }

    def from_dict(self, d: dict[str, Any]) -> None:
        """Takes over what `to_dict` gave."""
        self.failures = set(map(uuid.UUID, d.get("failures", ())))
        self.trial_progress = {uuid.UUID(one): far for one, far in d.get("trialProgress", {}).items()}
        self.trials_closed = set(map(uuid.UUID, d.get("trialsClosed", ())))
        self.trials_created = set(map(uuid.UUID, d.get("trialsCreated", ())))
        self.last_event_id = d.get("lastEventId", 0)
        self.experiment_id = d.get("experimentId")
        self.experiment_completed = d.get("experimentCompleted", False)
        self.experiment_failed = d.get("experimentFailed", False)


class SearchMethod(ABC):
    """Answers each event of a search with operations.

    If an answer was lost with its process, the method gets the event again, with the state that it saved
    before it. So decisions must depend on the state alone.

    Examples:
        >>> import uuid
        >>> from resolute import searcher
        >>> class OneTrial(searcher.SearchMethod):
        ...     def initial_operations(self, searcher_state):
        ...         trial = uuid.uuid4()
        ...         return [searcher.Create(trial, {"lr": 0.1}, None), searcher.ValidateAfter(trial, 10)]
        ...     def on_trial_created(self, searcher_state, request_id):
        ...         return []
        ...     def on_validation_completed(self, searcher_state, request_id, metric, train_length):
        ...         return [searcher.Close(request_id)]
        ...     def on_trial_closed(self, searcher_state, request_id):
        ...         return [searcher.Shutdown()]
        ...     def on_trial_exited_early(self, searcher_state, request_id, exited_reason):
        ...         return [searcher.Shutdown(failure=True)]
        ...     def progress(self, searcher_state):
        ...         return float(bool(searcher_state.trials_closed))
        >>> create, train = OneTrial().initial_operations(searcher.SearcherState())
        >>> create.hparams, train.length
        ({'lr': 0.1}, 10)
    """

    @abstractmethod
    def initial_operations(self, searcher_state: SearcherState) -> list[Operation]:
        """Returns the operations that the search begins with."""

    @abstractmethod
    def on_trial_created(self, searcher_state: SearcherState, request_id: uuid.UUID) -> list[Operation]:
        """Answers that a trial exists, under the UUID of the ``Create`` that asked for it."""

    @abstractmethod
    def on_validation_completed(
        self, searcher_state: SearcherState, request_id: uuid.UUID, metric: Any, train_length: int
    ) -> list[Operation]:
        """Answers that a trial trained to a length and validated.

        Args:
            searcher_state: The state of the search with this event.
            request_id: UUID of the trial.
            metric: Value of the searcher's metric, as the trial reported it.
            train_length: The length that it has trained in all, in the unit of the config.
        """

    @abstractmethod
    def on_trial_closed(self, searcher_state: SearcherState, request_id: uuid.UUID) -> list[Operation]:
        """Answers that a trial is over."""

    @abstractmethod
    def progress(self, searcher_state: SearcherState) -> float:
        """Tells how far the search is, from 0 to 1."""

    @abstractmethod
    def on_trial_exited_early(
        self, searcher_state: SearcherState, request_id: uuid.UUID, exited_reason: ExitedReason
    ) -> list[Operation]:
        """Answers that a trial left before it was closed.

        Args:
            searcher_state: The state of the search with this event.
            request_id: UUID of the trial.
            exited_reason: Why it left.
        """

    def save(
        self, searcher_state: SearcherState, path: str | os.PathLike[str], *, experiment_id: int
    ) -> None:
        """Saves the search into a directory.

        Args:
            searcher_state: What the runner knows.
            path: The directory; it exists.
            experiment_id: The experiment's number.
        """
        searcher_state.experiment_id = experiment_id
        (Path(path) / STATE_FILE).write_text(json.dumps(searcher_state.to_dict()))
        own = Path(path) / METHOD_STATE
        own.mkdir(exist_ok=True)
        self.save_method_state(own)

    def load(self, path: str | os.PathLike[str]) -> tuple[SearcherState, int]:
        """Loads what `save` saved.

        Args:
            path: The directory.

        Returns:
            What the runner knows, and the experiment's number.

        Raises:
            ValueError: What was saved there belongs to no experiment.
        """
        state = SearcherState()
        state.from_dict(json.loads((Path(path) / STATE_FILE).read_text()))
        if state.experiment_id is None:
            raise ValueError(f"{path} holds a search without an experiment")
        own = Path(path) / METHOD_STATE
        self.load_method_state(own)
        return state, state.experiment_id

    def save_method_state(self, path: Path) -> None:  # noqa: B027 - a hook
        """Saves what the method itself knows into a directory."""

    def load_method_state(self, path: Path) -> None:  # noqa: B027 - a hook
        """Loads what `save_method_state` saved."""
