"""Runs outside of the cluster are kept and shown, and nothing is scheduled for them, on both databases."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy.engine import Connection, Engine
from support.databases.prepared import migrate

from resolute.errors import FailedPreconditionError, IllegalTransitionError, InvalidArgumentError
from resolute_experiments.accounts.store import projects
from resolute_experiments.admission.unmanaged_runs import whole_config
from resolute_experiments.lifecycle import commands
from resolute_experiments.scheduling.pending_trials import pending_trials
from resolute_experiments.states import ExperimentState, RunOutcome, TrialState
from resolute_experiments.store import experiments, outbox, runs, trials
from resolute_experiments.store.runs import Run
from resolute_experiments.timing import Timing
from resolute_experiments.unmanaged import tracking
from resolute_experiments.unmanaged.tracking import RunStart
from resolute_serving.database.engine import create_engine

DEFAULTS = {"checkpoint_storage": {"type": "shared_fs", "host_path": "/c"}}
CONFIG = whole_config("laptop", {}, cluster_defaults=DEFAULTS)


def at(now: float) -> Timing:
    return Timing(now=now, preemption_timeout=60.0)


TIMING = at(50.0)


@pytest.fixture
def link(database_url: str) -> Iterator[Connection]:
    engine: Engine = create_engine(database_url, name="experiments", writes=True)
    migrate(engine, package="resolute_experiments", schema="experiments")
    with engine.begin() as connection:
        projects.ensure_uncategorized(connection, owner="admin", now=1.0)
        yield connection
    engine.dispose()


def beginning(**changes: Any) -> RunStart:
    made = RunStart(
        request_id=str(uuid.uuid4()),
        name="laptop",
        config=CONFIG,
        hparams={"lr": 0.1},
        metadata=None,
        started_at=10.0,
    )
    return replace(made, **changes)


def named(**changes: Any) -> RunStart:
    return beginning(external_experiment_id="night", external_trial_id="first", **changes)


def states(link: Connection, run: Run) -> tuple[ExperimentState, TrialState, RunOutcome]:
    return (
        experiments.get(link, experiment_id=run.experiment_id).state,
        trials.get(link, trial_id=run.trial_id).state,
        runs.get(link, run.allocation_id).outcome,
    )


def end(link: Connection, run: Run, outcome: RunOutcome = RunOutcome.COMPLETED, failure: str = "") -> None:
    tracking.end(link, run.trial_id, run.run, outcome=outcome, failure=failure, timing=at(20.0))


def test_a_run_that_goes_on_is_shown_and_left_alone_by_whoever_leads_runs(link: Connection) -> None:
    run = tracking.begin(link, beginning(), timing=at(11.0))
    assert states(link, run) == (ExperimentState.ACTIVE, TrialState.RUNNING, RunOutcome.UNSPECIFIED)
    assert experiments.get(link, experiment_id=run.experiment_id).unmanaged
    assert runs.unfinalized(link) == []
    assert [one.allocation_id for one in runs.unmanaged(link)] == [run.allocation_id]
    assert pending_trials(link, per_experiment=9, without_slots=9) == []


@pytest.mark.parametrize(
    ("outcome", "experiment", "trial"),
    [
        (RunOutcome.COMPLETED, ExperimentState.COMPLETED, TrialState.COMPLETED),
        (RunOutcome.FAILED, ExperimentState.ERROR, TrialState.ERROR),
        (RunOutcome.KILLED, ExperimentState.CANCELED, TrialState.CANCELED),
    ],
)
def test_its_end_is_that_of_its_trial_and_followers_of_the_log_are_told(
    link: Connection, outcome: RunOutcome, experiment: ExperimentState, trial: TrialState
) -> None:
    run = tracking.begin(link, beginning(), timing=at(11.0))
    end(link, run, outcome, "it broke")
    assert states(link, run) == (experiment, trial, outcome)
    (message,) = outbox.pending(link, run.experiment_id)
    assert message.kind is outbox.Kind.LOGS_CLOSED
    assert run.experiment_id in {found.id for found in experiments.live(link)}
    end(link, run, RunOutcome.COMPLETED)
    assert states(link, run)[2] is outcome


def test_the_same_request_gives_the_same_run(link: Connection) -> None:
    wanted = beginning()
    first = tracking.begin(link, wanted, timing=at(11.0))
    assert tracking.begin(link, wanted, timing=at(99.0)) == first
    assert tracking.begin(link, beginning(), timing=at(99.0)).experiment_id != first.experiment_id


def test_external_names_lead_to_the_next_run_of_the_same_trial(link: Connection) -> None:
    first = tracking.begin(link, named(), timing=at(11.0))
    second = tracking.begin(link, named(metadata={"machine": "b"}), timing=at(12.0))
    assert (second.trial_id, second.experiment_id, second.run) == (first.trial_id, first.experiment_id, 2)
    assert runs.get(link, first.allocation_id).outcome is RunOutcome.LOST
    assert tracking.renew(link, first.trial_id, 1, timing=at(40.0))
    assert not tracking.renew(link, first.trial_id, 2, timing=at(40.0))
    end(link, first)
    assert states(link, second) == (ExperimentState.ACTIVE, TrialState.RUNNING, RunOutcome.UNSPECIFIED)
    assert trials.get(link, trial_id=first.trial_id).metadata == {"machine": "b"}


def test_an_experiment_goes_on_until_its_last_trial_ends_and_again_with_another(link: Connection) -> None:
    one = tracking.begin(link, named(), timing=at(11.0))
    other = tracking.begin(link, replace(named(), external_trial_id="second"), timing=at(11.0))
    assert (other.experiment_id, other.run) == (one.experiment_id, 1)
    end(link, one)
    assert states(link, one)[:2] == (ExperimentState.ACTIVE, TrialState.COMPLETED)
    end(link, other)
    assert states(link, one)[0] is ExperimentState.COMPLETED
    tracking.begin(link, named(), timing=at(30.0))
    assert states(link, one)[0] is ExperimentState.ACTIVE


def test_an_experiment_can_be_made_before_its_trials(link: Connection) -> None:
    alone = beginning(external_experiment_id="night")
    made = tracking.begin_experiment(link, alone, timing=at(11.0))
    assert (made.state, made.unmanaged) == (ExperimentState.ACTIVE, True)
    assert trials.unfinished(link, made.id) == []
    assert tracking.begin_experiment(link, alone, timing=at(12.0)) == made
    run = tracking.begin(link, named(), timing=at(13.0))
    assert run.experiment_id == made.id
    end(link, run)
    assert experiments.get(link, experiment_id=made.id).state is ExperimentState.COMPLETED


def test_an_experiment_that_no_run_came_to_can_be_ended(link: Connection) -> None:
    made = tracking.begin_experiment(link, beginning(external_experiment_id="night"), timing=at(11.0))
    commands.kill(link, made, TIMING)
    assert experiments.get(link, experiment_id=made.id).state is ExperimentState.CANCELED


def test_a_run_that_counted_as_lost_counts_again_when_it_is_heard_of(link: Connection) -> None:
    run = tracking.begin(link, beginning(), timing=at(11.0))
    end(link, run, RunOutcome.LOST, "silence")
    assert states(link, run) == (ExperimentState.ERROR, TrialState.ERROR, RunOutcome.LOST)
    assert not tracking.renew(link, run.trial_id, run.run, timing=at(40.0))
    assert states(link, run) == (ExperimentState.ACTIVE, TrialState.RUNNING, RunOutcome.UNSPECIFIED)
    end(link, run, RunOutcome.LOST, "silence")
    end(link, run, RunOutcome.COMPLETED)
    assert states(link, run) == (ExperimentState.COMPLETED, TrialState.COMPLETED, RunOutcome.COMPLETED)


def test_a_person_can_end_it_but_not_pause_it(link: Connection) -> None:
    run = tracking.begin(link, beginning(), timing=at(11.0))
    experiment = experiments.get(link, experiment_id=run.experiment_id)
    for change in (commands.pause, commands.activate, commands.cancel):
        with pytest.raises(FailedPreconditionError, match="runs outside of the cluster"):
            change(link, experiment, TIMING)
    commands.kill(link, experiment, TIMING)
    assert states(link, run) == (ExperimentState.CANCELED, TrialState.CANCELED, RunOutcome.KILLED)
    assert tracking.renew(link, run.trial_id, run.run, timing=at(40.0))
    with pytest.raises(IllegalTransitionError):
        commands.kill_trial(link, trials.get(link, trial_id=run.trial_id), TIMING)


def test_the_name_of_a_deleted_experiment_is_not_taken_up(link: Connection) -> None:
    run = tracking.begin(link, named(), timing=at(11.0))
    end(link, run)
    commands.begin_deletion(link, experiments.get(link, experiment_id=run.experiment_id), TIMING)
    with pytest.raises(FailedPreconditionError, match="was deleted"):
        tracking.begin(link, named(), timing=at(60.0))


def test_a_run_that_counted_as_lost_brings_no_deleted_experiment_back(link: Connection) -> None:
    run = tracking.begin(link, beginning(), timing=at(11.0))
    end(link, run, RunOutcome.LOST, "silence")
    commands.begin_deletion(link, experiments.get(link, experiment_id=run.experiment_id), TIMING)
    assert tracking.renew(link, run.trial_id, run.run, timing=at(60.0))
    end(link, run, RunOutcome.COMPLETED)
    assert states(link, run)[:2] == (ExperimentState.DELETING, TrialState.ERROR)


def test_a_config_says_what_means_something_here_and_nothing_else() -> None:
    config = whole_config(
        "laptop",
        {"labels": ["a"], "searcher": {"metric": "accuracy", "smaller_is_better": False}},
        cluster_defaults=DEFAULTS,
    )
    assert config["labels"] == ["a"]
    assert config["searcher"]["metric"] == "accuracy"
    assert config["entrypoint"] is None
    with pytest.raises(InvalidArgumentError, match="has no resources; it may have"):
        whole_config("laptop", {"resources": {"slots_per_trial": 4}}, cluster_defaults=DEFAULTS)
