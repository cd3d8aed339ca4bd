"""Passes each event of a search to a search method, and posts the method's operations."""

from __future__ import annotations

import logging
import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

from resolute.api.searcher.v1 import event_pb2, operation_pb2
from resolute.client.remote.searches import PendingEvents
from resolute.client.schema.states import ExperimentState
from resolute.searcher.method import SearcherState, SearchMethod
from resolute.searcher.operations import ExitedReason, Operation, Progress, Shutdown

_log = logging.getLogger("resolute.searcher")
_POLL_SECONDS = 30.0


class SearchClient(Protocol):
    """The calls by which a client drives a search: on a cluster, or a script of events in tests."""

    def poll(self, *, wait: float) -> PendingEvents:
        """Returns the events that wait for an answer; waits some seconds for one."""

    def post(self, operations: Sequence[operation_pb2.Operation], *, answers: int) -> None:
        """Answers an event, and all before it."""

    def experiment_state(self) -> ExperimentState:
        """Returns the state of the experiment."""


class SearchRunner(ABC):
    """Drives a search to its end.

    The operations for an event are saved before they are posted. A runner that is started again posts them
    again, and the searcher accepts them once.

    Args:
        search_method: The search method.

    Examples:
        A runner that keeps its state in memory, and so does not survive its process:

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
        >>> class InMemory(searcher.SearchRunner):
        ...     def save_state(self, experiment_id, operations):
        ...         self.saved = operations
        >>> InMemory(OneTrial()).state.experiment_completed
        False
    """

    def __init__(self, search_method: SearchMethod) -> None:
        self.search_method = search_method
        self.state = SearcherState()

    @abstractmethod
    def save_state(self, experiment_id: int, operations: list[Operation]) -> None:
        """Saves the method, the state, and the answer that is about to be posted."""

    def drive(self, drive: SearchClient, *, experiment_id: int, prior: list[Operation] | None = None) -> None:
        """Answers events until the search is over.

        Args:
            drive: The search.
            experiment_id: The experiment's number.
            prior: The answer to the last event of the state, if it was saved and perhaps never posted.
        """
        self.state.experiment_id = experiment_id
        paused = False
        while not self.state.experiment_completed:
            unanswered = drive.poll(wait=_POLL_SECONDS)
            for trial_key, progress in unanswered.progress.items():
                self.state.trial_progress[uuid.UUID(trial_key)] = progress
            for event in unanswered.events:
                if prior is not None and event.sequence <= self.state.last_event_id:
                    operations = prior
                else:
                    operations = self._decide(event)
                    self.state.last_event_id = event.sequence
                    self.save_state(experiment_id, operations)
                prior = None
                self._post(drive, operations, event)
            if unanswered.over:
                self.state.experiment_completed = True
            elif not unanswered.events:
                paused = self._look(drive.experiment_state(), paused=paused)

    def _post(self, drive: SearchClient, operations: list[Operation], event: event_pb2.Event) -> None:
        drive.post([operation.to_message() for operation in operations], answers=event.sequence)
        for operation in operations:
            if isinstance(operation, Shutdown):
                self.state.experiment_completed = True
                self.state.experiment_failed = operation.failure

    def _look(self, state: ExperimentState, *, paused: bool) -> bool:
        if state.is_terminal:
            _log.info("the experiment ended: %s", state.name)
            self.state.experiment_completed = True
            self.state.experiment_failed = state is ExperimentState.ERROR
        elif state is ExperimentState.PAUSED and not paused:
            _log.info("the experiment is paused; the search goes on when it is activated")
        return state is ExperimentState.PAUSED

    def _decide(self, event: event_pb2.Event) -> list[Operation]:
        method, state = self.search_method, self.state
        match event.WhichOneof("kind"):
            case "started":
                return method.initial_operations(state)
            case "trial_created":
                request_id = uuid.UUID(event.trial_created.trial_key)
                state.trials_created.add(request_id)
                state.trial_progress[request_id] = 0.0
                return method.on_trial_created(state, request_id)
            case "validation_completed":
                done = event.validation_completed
                operations = method.on_validation_completed(
                    state, uuid.UUID(done.trial_key), done.metric, done.length
                )
            case "trial_closed":
                request_id = uuid.UUID(event.trial_closed.trial_key)
                state.trials_closed.add(request_id)
                state.trial_progress.pop(request_id, None)
                operations = method.on_trial_closed(state, request_id)
            case _:
                request_id = uuid.UUID(event.trial_exited.trial_key)
                reason = ExitedReason.from_message(event.trial_exited.reason)
                if reason is ExitedReason.ERRORED:
                    state.failures.add(request_id)
                operations = method.on_trial_exited_early(state, request_id, reason)
        if any(isinstance(operation, Shutdown) for operation in operations):
            return operations
        return [*operations, Progress(min(max(method.progress(state), 0.0), 1.0))]
