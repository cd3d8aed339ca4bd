"""Trials that ran elsewhere are kept as ended ones, on both databases."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy.engine import Engine

from resolute.errors import InvalidArgumentError
from resolute_experiments.recording import Recording, record, whole_config
from resolute_experiments.states import ExperimentState, RunOutcome, TrialState
from resolute_experiments.store import experiments, projects, runs, trials
from resolute_serving import migrations
from resolute_serving.context import TrialRun
from resolute_serving.database import create_engine

CONFIG = whole_config(
    "offline", cluster_defaults={"checkpoint_storage": {"type": "shared_fs", "host_path": "/c"}}
)


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    made = create_engine(database_url, name="experiments", writes=True)
    migrations.upgrade(made, package="resolute_experiments", schema="experiments")
    with made.begin() as connection:
        projects.ensure_uncategorized(connection, owner="admin", now=1.0)
    yield made
    made.dispose()


def recording(**changes: Any) -> Recording:
    made = Recording(
        request_id=str(uuid.uuid4()), name="offline", metadata={"a": 1}, started_at=10.0, ended_at=20.0
    )
    return replace(made, **changes)


def keep(engine: Engine, wanted: Recording) -> TrialRun:
    with engine.begin() as connection:
        return record(connection, wanted, CONFIG, now=30.0)


def test_a_recorded_trial_has_ended_and_nothing_is_left_to_do_for_it(engine: Engine) -> None:
    run = keep(engine, recording())
    with engine.begin() as connection:
        experiment = experiments.get(connection, experiment_id=run.experiment_id)
        trial = trials.get(connection, trial_id=run.trial_id)
        (kept,) = runs.of_trial(connection, run.trial_id)
        assert experiment.state is ExperimentState.COMPLETED
        assert (experiment.created_at, experiment.ended_at) == (10.0, 20.0)
        assert (trial.state, trial.run, trial.metadata) == (TrialState.COMPLETED, 1, {"a": 1})
        assert kept.outcome is RunOutcome.COMPLETED
        assert run.experiment_id not in {found.id for found in experiments.live(connection)}
        assert run.trial_id not in {found.trial_id for found in trials.queue(connection, per_experiment=9)}


def test_the_same_request_gives_the_same_trial(engine: Engine) -> None:
    wanted = recording()
    first = keep(engine, wanted)
    assert keep(engine, replace(wanted, ended_at=99.0)) == first
    assert keep(engine, recording()) != first


def test_the_request_of_an_experiment_that_was_submitted_is_refused(engine: Engine) -> None:
    wanted = recording()
    run = keep(engine, wanted)
    with engine.begin() as connection:
        experiments.update(connection, run.experiment_id, definition_size=4)
    with pytest.raises(InvalidArgumentError, match="which is no recorded trial"):
        keep(engine, wanted)


def test_the_config_of_a_recorded_trial_is_whole_without_an_entrypoint() -> None:
    assert CONFIG["name"] == "offline"
    assert CONFIG["entrypoint"] is None
    assert CONFIG["resources"]["slots_per_trial"] == 1
