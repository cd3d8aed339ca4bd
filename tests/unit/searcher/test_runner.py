"""The client of a custom search: what it asks its method, what it posts, what it keeps, when it ends."""

from __future__ import annotations

import logging
import pickle
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from resolute.api.searcher.v1 import event_pb2 as event_pb
from resolute.api.searcher.v1 import operation_pb2 as operation_pb
from resolute.client.remote.searches import PendingEvents
from resolute.client.schema.states import ExperimentState
from resolute.searcher import (
    Close,
    Create,
    ExitedReason,
    LocalSearchRunner,
    Operation,
    Progress,
    SearcherState,
    SearchMethod,
    Shutdown,
    ValidateAfter,
)

TRIAL = uuid.UUID(int=7, version=4)
NAME = str(TRIAL)


class Noting(SearchMethod):
    """Notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.shuts_down = False

    def initial_operations(self, searcher_state: SearcherState) -> list[Operation]:
        self.asked.append(("initial",))
        return [Create(TRIAL, {"x": 1}, None), ValidateAfter(TRIAL, 4)]

    def on_trial_created(self, searcher_state: SearcherState, request_id: uuid.UUID) -> list[Operation]:
        self.asked.append(("created", request_id))
        return []

    def on_validation_completed(
        self, searcher_state: SearcherState, request_id: uuid.UUID, metric: Any, train_length: int
    ) -> list[Operation]:
        self.asked.append(("validated", request_id, metric, train_length))
        return [Close(request_id)]

    def on_trial_closed(self, searcher_state: SearcherState, request_id: uuid.UUID) -> list[Operation]:
        self.asked.append(("closed", request_id))
        return [Shutdown()] if self.shuts_down else []

    def progress(self, searcher_state: SearcherState) -> float:
        return 0.25

    def on_trial_exited_early(
        self, searcher_state: SearcherState, request_id: uuid.UUID, exited_reason: ExitedReason
    ) -> list[Operation]:
        self.asked.append(("exited", request_id, exited_reason))
        return []

    def save_method_state(self, path: Path) -> None:
        (path / "asked").write_bytes(pickle.dumps(self.asked))

    def load_method_state(self, path: Path) -> None:
        self.asked = pickle.loads((path / "asked").read_bytes())


class PowerCutError(Exception):
    """The client's process is gone."""


@dataclass
class Script:
    """A search that has some events, and an experiment that goes through some states after them."""

    events: list[event_pb.Event]
    states: list[ExperimentState] = field(default_factory=lambda: [ExperimentState.COMPLETED])
    posts: list[tuple[int, list[str]]] = field(default_factory=list)
    cut_at: int = 0

    def poll(self, *, wait: float) -> PendingEvents:
        answered = self.posts[-1][0] if self.posts else 0
        left = tuple(event for event in self.events if event.sequence > answered)
        return PendingEvents(left, {NAME: 0.5}, over=False)

    def post(self, operations: Sequence[operation_pb.Operation], *, answers: int) -> None:
        if answers == self.cut_at:
            self.cut_at = 0
            raise PowerCutError
        self.posts.append((answers, [str(operation.WhichOneof("kind")) for operation in operations]))

    def experiment_state(self) -> ExperimentState:
        return self.states.pop(0)


EVENTS = [
    event_pb.Event(sequence=1, started=event_pb.Event.Started()),
    event_pb.Event(sequence=2, trial_created=event_pb.Event.TrialCreated(trial_key=NAME)),
    event_pb.Event(
        sequence=3,
        validation_completed=event_pb.Event.ValidationCompleted(trial_key=NAME, metric=0.5, length=4),
    ),
    event_pb.Event(
        sequence=4,
        trial_exited=event_pb.Event.TrialExited(trial_key=NAME, reason=event_pb.EXIT_REASON_ERRORED),
    ),
    event_pb.Event(sequence=5, trial_closed=event_pb.Event.TrialClosed(trial_key=NAME)),
]
ASKED = [
    ("initial",),
    ("created", TRIAL),
    ("validated", TRIAL, 0.5, 4),
    ("exited", TRIAL, ExitedReason.ERRORED),
    ("closed", TRIAL),
]
POSTED = [
    (1, ["create", "validate_after"]),
    (2, []),
    # How far the search is goes with the answer to a validation, an exit and an end.
    (3, ["close", "progress"]),
    (4, ["progress"]),
    (5, ["progress"]),
]


def test_every_event_is_asked_about_and_answered_in_order(tmp_path: Path) -> None:  # as release 0.30 does
    method = Noting()
    runner, script = LocalSearchRunner(method, tmp_path), Script(EVENTS)
    runner.drive(script, experiment_id=3)
    assert method.asked == ASKED
    assert script.posts == POSTED
    state = runner.state
    assert (state.trials_created, state.trials_closed, state.failures) == ({TRIAL}, {TRIAL}, {TRIAL})
    assert state.trial_progress == {TRIAL: 0.5}
    assert (state.last_event_id, state.experiment_id) == (5, 3)


@pytest.mark.parametrize("event", range(1, 6))
def test_an_answer_that_was_saved_is_posted_again_and_not_decided_again(  # as release 0.30 does
    tmp_path: Path, event: int
) -> None:
    script = Script(EVENTS, cut_at=event)
    runner = LocalSearchRunner(Noting(), tmp_path)
    with pytest.raises(PowerCutError):
        runner.drive(script, experiment_id=3)
    assert [answered for answered, _ in script.posts] == list(range(1, event))
    method = Noting()
    again = LocalSearchRunner(method, tmp_path)
    prior = again.load_state(3)
    assert again.state.last_event_id == event
    again.drive(script, experiment_id=3, prior=prior)
    assert method.asked == ASKED
    assert script.posts == POSTED


def test_the_state_lies_in_files_of_the_last_event(tmp_path: Path) -> None:  # as release 0.30 does
    LocalSearchRunner(Noting(), tmp_path).drive(Script(EVENTS), experiment_id=3)
    folder = tmp_path / "exp_3"
    assert (folder / "event_id").read_text() == "5"
    assert sorted(path.name for path in folder.iterdir()) == ["event_5", "event_id"]
    (progress,) = pickle.loads((folder / "event_5" / "ops").read_bytes())
    assert isinstance(progress, Progress)
    state, experiment_id = Noting().load(folder / "event_5")
    assert (state.last_event_id, experiment_id) == (5, 3)


@pytest.mark.parametrize(
    ("state", "failed"),
    [(ExperimentState.COMPLETED, False), (ExperimentState.CANCELED, False), (ExperimentState.ERROR, True)],
)
def test_the_end_of_the_experiment_ends_the_client(  # as release 0.30 does
    tmp_path: Path, state: ExperimentState, failed: bool
) -> None:
    runner = LocalSearchRunner(Noting(), tmp_path)
    runner.drive(Script(EVENTS[:1], [ExperimentState.ACTIVE, state]), experiment_id=3)
    assert (runner.state.experiment_completed, runner.state.experiment_failed) == (True, failed)


def test_a_pause_is_told_once_and_waited_out(  # as release 0.30 does
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    paused = [ExperimentState.PAUSED] * 3
    states = [*paused, ExperimentState.ACTIVE, *paused, ExperimentState.COMPLETED]
    with caplog.at_level(logging.INFO, logger="resolute.searcher"):
        LocalSearchRunner(Noting(), tmp_path).drive(Script(EVENTS[:1], states), experiment_id=3)
    assert [record.message.count("is paused") for record in caplog.records] == [1, 1, 0]
    assert states == []


def test_a_shutdown_is_the_last_answer(tmp_path: Path) -> None:  # as release 0.30 does
    method = Noting()
    method.shuts_down = True
    script = Script(EVENTS)
    runner = LocalSearchRunner(method, tmp_path)
    runner.drive(script, experiment_id=3)
    assert script.posts[-1] == (5, ["shutdown"])
    assert runner.state.experiment_completed
    assert not runner.state.experiment_failed
