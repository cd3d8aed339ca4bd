"""Idle GPUs are the reason of their trial; the policy is applied once all containers of a run have them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from contract.experiments.lifecycle.test_lifecycle import NOW, Store
from support.databases.prepared import migrate

from resolute_experiments.allocations.idle_runs import note_idle
from resolute_experiments.states import ExperimentState, TrialState
from resolute_experiments.store import alerts, experiments, runs
from resolute_experiments.store.alerts import CLUSTER, StoredRules
from resolute_experiments.store.schema.alerts import alert_deliveries
from resolute_experiments.store.schema.runs import containers
from resolute_serving.database.engine import create_engine

SENTENCE = "its GPUs worked for 0.4 % of the last 60 minutes, below the limit of 5 %"


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    engine = create_engine(database_url, name="experiments", writes=True)
    migrate(engine, package="resolute_experiments", schema="experiments")
    yield Store(engine)
    engine.dispose()


def started(store: Store, then: str, *, ranks: int = 1) -> runs.Run:
    policy = {"gpu_below": 5, "over": 3600, "then": then}
    config = {**store.experiment().config, "utilization_policy": policy}
    store.run(lambda c: experiments.update(c, store.experiment_id, config=config))
    run = store.start(store.create_trial())
    (first,) = store.run(lambda c: runs.containers_of(c, run.allocation_id))
    row: dict[str, Any] = {
        **{name: getattr(first, name) for name in containers.c.keys()},  # noqa: SIM118 - columns, not a dict
        "slot_ids": [1],
        "ports": [],
    }
    for rank in range(1, ranks):
        store.run(lambda c, rank=rank: c.execute(sa.insert(containers), {**row, "container_rank": rank}))  # type: ignore[misc]
    return run


def note(store: Store, run: runs.Run, sentence: str, rank: int = 0) -> None:
    store.run(lambda c: note_idle(c, run.allocation_id, rank, sentence, timing=NOW))


def test_a_warning_is_told_and_stays_with_the_run(store: Store) -> None:
    rules = StoredRules(
        workspace_number=CLUSTER, rules=({"on": "idle", "to": ["team"]},), only_named=frozenset()
    )
    store.run(lambda c: alerts.write(c, rules, sealed=b"", now=NOW.now))
    run = started(store, "warn")
    note(store, run, SENTENCE)
    assert store.trial(run.trial_id).explanation == f"idle: {SENTENCE}"
    note(store, run, "")
    assert store.trial(run.trial_id).explanation == ""
    assert store.signal(run.trial_id).idle == SENTENCE
    assert store.experiment().state is ExperimentState.ACTIVE
    ((alert,),) = store.run(lambda c: c.execute(sa.select(alert_deliveries.c.alert)).all())
    assert (alert["on"], alert["text"]) == ("idle", SENTENCE)


@pytest.mark.parametrize(
    ("then", "state"), [("pause", ExperimentState.PAUSED), ("end", ExperimentState.STOPPING_CANCELED)]
)
def test_the_policy_asks_a_run_to_checkpoint_and_exit(
    store: Store, then: str, state: ExperimentState
) -> None:
    run = started(store, then)
    note(store, run, SENTENCE)
    assert store.experiment().state is state
    assert store.trial(run.trial_id).state is TrialState.STOPPING
    signal = store.signal(run.trial_id)
    assert (signal.preempt, signal.kill) == (True, False)


def test_a_run_is_idle_when_all_of_its_containers_are(store: Store) -> None:
    run = started(store, "pause", ranks=2)
    note(store, run, SENTENCE)
    assert store.experiment().state is ExperimentState.ACTIVE
    note(store, run, SENTENCE, rank=1)
    assert store.experiment().state is ExperimentState.PAUSED
    assert store.signal(run.trial_id).idle == f"container 0: {SENTENCE}; container 1: {SENTENCE}"
