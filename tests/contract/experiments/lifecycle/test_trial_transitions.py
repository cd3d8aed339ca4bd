"""Each change of a trial's state is recorded with its reason, on both databases."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from contract.experiments.lifecycle.test_lifecycle import NOW, Store
from support.databases.prepared import migrate
from support.services.access import Calls, Scenario
from support.services.in_process import Running

from resolute.api.experiments.v1 import (
    experiment_pb2,
    run_pb2,
    trial_pb2,
    trials_service_pb2,
    trials_service_pb2_grpc,
)
from resolute.api.preemption.v1 import signal_pb2
from resolute.api.searcher.v1 import action_pb2
from resolute.contracts.values import to_value
from resolute_experiments.lifecycle import actions, commands
from resolute_experiments.lifecycle.action_inputs import ActionInputs
from resolute_experiments.states import ExperimentEvent, TrialEvent
from resolute_experiments.store import trials
from resolute_experiments.store.schema import trial_transitions
from resolute_experiments.transitions import transition_experiment, transition_trial
from resolute_experiments.transitions.signals import SignalReason
from resolute_serving.context import Role, User, current_principal
from resolute_serving.database.engine import create_engine

ADA = User(name="ada", role=Role.EDITOR)


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    engine = create_engine(database_url, name="experiments", writes=True)
    migrate(engine, package="resolute_experiments", schema="experiments")
    yield Store(engine)
    engine.dispose()


@pytest.fixture
def as_ada() -> Iterator[None]:
    token = current_principal.set(ADA)
    yield
    current_principal.reset(token)


def recorded(store: Store, *columns: str) -> list[tuple[object, ...]]:
    chosen = [trial_transitions.c[name] for name in columns]
    query = sa.select(*chosen).order_by(trial_transitions.c.position)
    return store.run(lambda c: [tuple(row) for row in c.execute(query)])


def created(store: Store, *, event: int) -> str:
    """Creates a trial by an action that an event of its search caused."""
    trial_id = str(uuid.uuid4())
    action = action_pb2.Action(
        sequence=1,
        event_sequence=event,
        create_trial=action_pb2.Action.CreateTrial(
            trial_key=str(uuid.uuid4()), trial_id=trial_id, hparams=to_value({"lr": 0.1}), trial_seed=7
        ),
    )
    store.run(lambda c: actions.apply(c, store.experiment_id, [action], NOW, ActionInputs()))
    return trial_id


def test_a_trial_that_its_search_creates_and_closes_names_the_events_that_decided(store: Store) -> None:
    trial_id = created(store, event=3)
    store.start(trial_id)
    close = action_pb2.Action(
        sequence=2, event_sequence=8, close_trial=action_pb2.Action.CloseTrial(trial_id=trial_id)
    )
    store.run(lambda c: actions.apply(c, store.experiment_id, [close], NOW, ActionInputs()))
    assert recorded(store, "event", "from_state", "to_state", "search_event", "actor") == [
        ("CREATE", "", "QUEUED", 3, ""),
        ("CLOSE", "RUNNING", "RUNNING", 8, ""),
    ]


@pytest.mark.usefixtures("as_ada")
def test_a_pause_names_the_user_and_the_scheduler_its_own_reason(store: Store) -> None:
    first, second = store.create_trial(), store.create_trial()
    store.start(first)
    store.start(second)

    def preempt(trial_id: str) -> None:
        store.run(
            lambda c: transition_trial(
                c,
                trials.get(c, trial_id=trial_id),
                TrialEvent.PREEMPT,
                NOW,
                reason=SignalReason.SCHEDULER,
                detail="makes room for trial 9",
            )
        )

    preempt(second)
    store.change(commands.pause)
    assert recorded(store, "event", "to_state", "signal_reason", "actor", "detail")[2:] == [
        ("PREEMPT", "STOPPING", "SCHEDULER", "", "makes room for trial 9"),
        ("PAUSE", "STOPPING", "USER", "ada", ""),
        ("PAUSE", "STOPPING", "USER", "ada", ""),
    ]


def test_what_changes_nothing_is_not_recorded_and_a_deleted_experiment_keeps_nothing(store: Store) -> None:
    store.create_trial()
    store.change(commands.activate)
    assert [event for (event,) in recorded(store, "event")] == ["CREATE"]
    store.change(commands.kill)
    store.change(commands.finish_if_done)
    store.change(commands.begin_deletion)
    assert [event for (event,) in recorded(store, "event")] == ["CREATE", "KILL"]
    store.change(lambda c, e, m: transition_experiment(c, e, ExperimentEvent.FILES_DELETED, m))
    assert recorded(store, "event") == []


def test_a_list_gives_pages_of_transitions(play: Callable[[Scenario], None]) -> None:
    async def scenario(running: Running, _admin: Calls) -> None:
        async with running.channel(running.user_token()) as channel:
            await play_run(trials_service_pb2_grpc.TrialsServiceStub(channel))

    async def play_run(stub: Any) -> None:
        begun = await stub.BeginRun(
            trials_service_pb2.BeginRunRequest(external_run_id=str(uuid.uuid4()), name="laptop")
        )
        await stub.EndRun(
            trials_service_pb2.EndRunRequest(
                trial_id=begun.trial.trial_id, run=1, outcome=run_pb2.RUN_OUTCOME_FAILED, failure="no data"
            )
        )
        request = trials_service_pb2.ListTrialTransitionsRequest(
            trial=trial_pb2.TrialKey(trial_id=begun.trial.trial_id), page_size=1
        )
        listed = trials_service_pb2.ListTrialsRequest(
            experiment=experiment_pb2.ExperimentKey(number=begun.trial.experiment_number), include_runs=True
        )
        (trial,) = (await stub.ListTrials(listed)).trials
        assert [run.failure for run in trial.runs] == ["no data"]
        listed.include_runs = False
        assert not (await stub.ListTrials(listed)).trials[0].runs
        found = []
        while True:
            response = await stub.ListTrialTransitions(request)
            assert len(response.transitions) == 1
            found += response.transitions
            if not response.next_page_token:
                break
            request.page_token = response.next_page_token
        assert found[0].event == "CREATE"
        last = found[-1]
        assert (last.event, last.detail) == ("UNMANAGED_RUN_FAILED", "no data")
        assert last.to_state == trial_pb2.TRIAL_STATE_ERROR
        assert last.signal_reason == signal_pb2.SIGNAL_REASON_UNSPECIFIED
        assert last.HasField("time")

    play(scenario)
