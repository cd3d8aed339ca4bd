"""What keeps a run from moving is shown while it lasts, stays with the run, and does what the config says."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest
import sqlalchemy as sa
from contract.experiments.lifecycle.test_lifecycle import NOW, Store
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.clocks import ManualClock
from support.databases.prepared import migrate
from support.services.experiments_context import context

from resolute.api.experiments.v1 import allocations_service_pb2 as pb2
from resolute.errors import RunSupersededError
from resolute_experiments.allocations import hangs
from resolute_experiments.allocations.hangs import note_hang
from resolute_experiments.allocations.leases import Leases
from resolute_experiments.scheduling import jobs
from resolute_experiments.scheduling.wait_reasons import WaitReasons
from resolute_experiments.servicers import allocations
from resolute_experiments.servicers.allocations import MOST_NOTES_A_MINUTE, AllocationsServicer
from resolute_experiments.servicers.messages.experiments import job_message
from resolute_experiments.states import ExperimentState, TrialState
from resolute_experiments.store import alerts, experiments, runs
from resolute_experiments.store.alerts import CLUSTER, StoredRules
from resolute_experiments.store.schema.alerts import alert_deliveries
from resolute_serving.auth.tokens import TokenSigner
from resolute_serving.context import TrialRun
from resolute_serving.database.engine import Database, create_engine

SENTENCE = "rank 0 waits in all_reduce at train.py:88; rank 1 is in next at data.py:40, 14 minutes"


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    engine = create_engine(database_url, name="experiments", writes=True)
    migrate(engine, package="resolute_experiments", schema="experiments")
    yield Store(engine)
    engine.dispose()


def note(store: Store, run: runs.Run, sentence: str) -> None:
    store.run(lambda c: note_hang(c, run.allocation_id, 0, sentence, timing=NOW))


def test_a_hang_is_the_reason_of_its_trial_while_it_lasts_and_stays_with_the_run(store: Store) -> None:
    trial_id = store.create_trial()
    run = store.start(trial_id)
    note(store, run, SENTENCE)
    assert store.trial(trial_id).explanation == f"it does not move: {SENTENCE}"
    note(store, run, "")
    assert store.trial(trial_id).explanation == ""
    assert store.signal(trial_id).hang == SENTENCE
    assert store.experiment().state is ExperimentState.ACTIVE


def test_the_queue_says_which_trials_do_not_move_and_since_when(store: Store) -> None:
    moving, stuck = store.create_trial(), store.create_trial()
    store.start(moving)
    run = store.start(stuck)

    def found() -> list[tuple[int, str, float]]:
        (job,) = store.run(jobs.ordered_jobs)
        message = job_message(job, WaitReasons())
        return [(one.trial_number, one.reason, one.notice_time.seconds) for one in message.stuck_trials]

    assert found() == []
    note(store, run, SENTENCE)
    number = store.trial(stuck).number
    assert found() == [(number, SENTENCE, int(NOW.now))]
    later = replace(NOW, now=NOW.now + 60)
    store.run(lambda c: note_hang(c, run.allocation_id, 0, f"{SENTENCE} and more", timing=later))
    assert found() == [(number, f"{SENTENCE} and more", int(NOW.now))]
    note(store, run, "")
    assert found() == []


def test_a_hang_is_told_once_by_the_rules_for_it(store: Store) -> None:
    rules = StoredRules(
        workspace_number=CLUSTER, rules=({"on": "hang", "to": ["team"]},), only_named=frozenset()
    )
    store.run(lambda c: alerts.write(c, rules, sealed=b"", now=NOW.now))
    trial_id = store.create_trial()
    run = store.start(trial_id)
    note(store, run, SENTENCE)
    note(store, run, f"{SENTENCE} and more")
    ((alert,),) = store.run(lambda c: c.execute(sa.select(alert_deliveries.c.alert)).all())
    assert (alert["on"], alert["text"], alert["level"]) == ("hang", SENTENCE, "warn")


def test_a_hang_pauses_the_experiment_where_its_config_says_so(store: Store) -> None:
    trial_id = store.create_trial()
    run = store.start(trial_id)
    config = {**store.experiment().config, "hang": {"after": 60, "on_hang": "pause"}}
    store.run(lambda c: experiments.update(c, store.experiment_id, config=config))
    note(store, run, SENTENCE)
    assert store.experiment().state is ExperimentState.PAUSED
    assert store.trial(trial_id).state is TrialState.STOPPING
    assert store.signal(trial_id).preempt


def test_what_kept_a_run_says_nothing_of_the_one_that_took_its_place(store: Store) -> None:
    trial_id = store.create_trial()
    run = store.start(trial_id)
    config = {**store.experiment().config, "hang": {"after": 60, "on_hang": "pause"}}
    store.run(lambda c: experiments.update(c, store.experiment_id, config=config))
    store.start(trial_id)
    with pytest.raises(RunSupersededError):
        note(store, run, SENTENCE)
    assert store.trial(trial_id).explanation == ""
    assert store.experiment().state is ExperimentState.ACTIVE


def test_a_run_says_something_else_only_so_often_within_a_minute(
    store: Store, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each may be an alert to all endpoints of a rule."""
    noted = []
    monkeypatch.setattr(hangs, "note_hang", lambda *arguments, **_: noted.append(arguments[-1]))
    run = store.start(store.create_trial())
    facts = SimpleNamespace(
        identity=TrialRun(run.trial_id, 1, "e", run.allocation_id, "w"),
        run=run,
        container=SimpleNamespace(hang="", idle=""),
        news=False,
        owner=None,
        token=None,
    )
    monkeypatch.setattr(allocations, "_lease_facts", lambda *_: facts)
    clock = ManualClock()
    database = Database(database_url, name="experiments")
    signer = TokenSigner(Ed25519PrivateKey.generate(), cluster_id="c", clock=clock)
    servicer = AllocationsServicer(
        context(database, clock), signer=signer, leases=Leases(clock, ttl=60.0), token_ttl=60.0
    )

    async def renew(count: int) -> None:
        for number in range(count):
            request = pb2.RenewLeaseRequest(allocation_id=run.allocation_id, hang=f"it waits {number} s")
            await servicer.RenewLease(request, None)

    asyncio.run(renew(MOST_NOTES_A_MINUTE + 5))
    assert len(noted) == MOST_NOTES_A_MINUTE
    clock.advance(60.0)
    asyncio.run(renew(1))
    assert noted[-1] == "it waits 0 s"
    assert len(noted) == MOST_NOTES_A_MINUTE + 1
    database.close()
