"""What follows from a bad report, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from contract.experiments.lifecycle.test_lifecycle import NOW, Store
from support.databases.prepared import migrate

from resolute_experiments.guard import guarded_trials
from resolute_experiments.guard.action import BadReport, settle
from resolute_experiments.states import ExperimentState, RunOutcome, TrialState
from resolute_experiments.store import alerts, experiments, runs, trials
from resolute_experiments.store.alerts import CLUSTER, StoredRules
from resolute_experiments.store.schema.alerts import alert_deliveries
from resolute_serving.database.engine import create_engine

BAD = BadReport(steps=412, fault="loss is nan")


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    engine = create_engine(database_url, name="experiments", writes=True)
    migrate(engine, package="resolute_experiments", schema="experiments")
    yield Store(engine)
    engine.dispose()


def start(
    store: Store, trial_id: str = "", *, reported: int = 412, **guard: Any
) -> guarded_trials.GuardedTrial:
    """Starts a run of a guarded trial, which reports until a step."""
    section = {
        "metric": "loss",
        "nan": True,
        "above": None,
        "then": "rollback",
        "skip_batches": 0,
        "at_most": 1,
    }
    config = {**store.experiment().config, "guard": {**section, **guard}}
    store.run(lambda c: experiments.update(c, store.experiment_id, config=config))
    run = store.start(trial_id or store.create_trial())
    trial = store.trial(run.trial_id)
    columns = {"guarded_steps": 300, "reported_run": run.run, "reported_steps": reported}
    store.run(lambda c: trials.update(c, trial, **columns))
    (guarded,) = store.run(guarded_trials.reported)
    return guarded


def judge(store: Store, guarded: guarded_trials.GuardedTrial, bad: BadReport | None, *, steps: int) -> bool:
    return store.run(lambda c: settle(c, guarded, bad, steps=steps, timing=NOW))


def test_good_reports_are_judged_once(store: Store) -> None:
    guarded = start(store)
    assert guarded.guard["metric"] == "loss"
    assert not judge(store, guarded, None, steps=412)
    assert store.run(guarded_trials.reported) == []
    assert store.run(lambda c: guarded_trials.good_steps(c, store.experiment_id)) == {guarded.trial_id: 412}


def test_a_bad_report_ends_the_run_at_once(store: Store) -> None:
    rules = StoredRules(
        workspace_number=CLUSTER, rules=({"on": "guard", "to": ["team"]},), only_named=frozenset()
    )
    store.run(lambda c: alerts.write(c, rules, sealed=b"", now=NOW.now))
    guarded = start(store, skip_batches=50)
    assert judge(store, guarded, BAD, steps=400)
    run = store.signal(guarded.trial_id)
    assert (run.kill, run.signal_reason, run.bad_steps, run.good_steps) == (True, "GUARD", 412, 400)
    text = "loss is nan at step 412: back to the last checkpoint until step 400, 50 batches skipped"
    trial = store.trial(guarded.trial_id)
    assert (run.guard, trial.explanation) == (text, f"guard: {text}")
    assert (trial.state, trial.kill_requested) == (TrialState.STOPPING, False)
    ((alert,),) = store.run(lambda c: c.execute(sa.select(alert_deliveries.c.alert)).all())
    assert (alert["on"], alert["text"]) == ("guard", text)
    # What it goes back to stays known until its next run, and nothing more of this run is judged.
    assert store.run(lambda c: guarded_trials.good_steps(c, store.experiment_id)) == {guarded.trial_id: 400}
    assert store.run(guarded_trials.reported) == []
    assert store.run(lambda c: guarded_trials.of_trial(c, guarded.trial_id)) is None
    assert not judge(store, guarded, BAD, steps=400), "another replica has come first"


def test_a_trial_that_went_back_often_enough_is_paused(store: Store) -> None:
    guarded = start(store)
    judge(store, guarded, BAD, steps=400)
    ended = {"outcome": RunOutcome.PREEMPTED.value, "ended_at": NOW.now}
    store.run(lambda c: runs.update(c, guarded.allocation_id, **ended))
    again = start(store, guarded.trial_id)
    assert store.experiment().state is ExperimentState.ACTIVE
    judge(store, again, BAD, steps=400)
    assert store.experiment().state is ExperimentState.PAUSED
    run = store.signal(guarded.trial_id)
    assert (run.kill, run.good_steps) == (True, 400)
    assert run.guard.endswith("; the experiment is paused, for the trial has gone back 1 times already")


def test_a_pause_goes_back_too(store: Store) -> None:
    guarded = start(store, then="pause")
    judge(store, guarded, BAD, steps=400)
    assert store.experiment().state is ExperimentState.PAUSED
    assert (store.signal(guarded.trial_id).kill, store.signal(guarded.trial_id).good_steps) == (True, 400)


def test_a_warning_is_taken_back_after_a_good_report(store: Store) -> None:
    guarded = start(store, reported=500, then="warn")
    assert not judge(store, guarded, BAD, steps=412)
    (guarded,) = store.run(guarded_trials.reported)
    assert store.trial(guarded.trial_id).explanation == "guard: loss is nan at step 412"
    judge(store, guarded, BadReport(steps=420, fault="loss is nan"), steps=420)
    (guarded,) = store.run(guarded_trials.reported)
    judge(store, guarded, None, steps=500)
    assert store.trial(guarded.trial_id).explanation == ""
    run = store.signal(guarded.trial_id)
    assert (run.guard, run.kill) == ("loss is nan at step 412", False), "the first of several stays"
