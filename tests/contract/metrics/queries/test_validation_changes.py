"""The best and the last validations of trials, in the order in which they changed."""

from __future__ import annotations

import asyncio
import math
import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from contract.experiments.accounts.test_statements import statements
from support.databases.postgres import PostgresServer
from support.services.metrics import Metrics, blocks_of, metrics_on

from resolute.api.metrics.v1 import metrics_service_pb2 as api
from resolute.errors import ConflictError, UnavailableError
from resolute_metrics.store import aggregates
from resolute_serving.database import migrations
from resolute_serving.database.engine import Database


def changes(metrics: Metrics, *, after: int = 0, size: int = 0) -> api.ListTrialValidationsResponse:
    request = api.ListTrialValidationsRequest(after_revision=after, page_size=size)
    response: api.ListTrialValidationsResponse = metrics.call("ListTrialValidations", request)
    return response


def validate(metrics: Metrics, trial: str, *values: float, first: int = 0) -> None:
    """Reports one validation after the other, of steps 10, 20, …"""
    reports = [
        ("validation", 10 * (place + 1), {"accuracy": value}) for place, value in enumerate(values, first)
    ]
    metrics.report(*reports, first=first, trial=trial)


def test_a_change_has_the_best_and_the_last_value_with_their_steps(alone: Metrics) -> None:
    validate(alone, alone.trial, 0.5, 0.9, 0.7)
    (found,) = changes(alone).trials
    assert (found.trial_id, found.experiment_id, found.metric) == (
        alone.trial,
        alone.experiment,
        "accuracy",
    )
    assert (found.best_value, found.best_steps, found.last_value, found.last_steps) == (0.9, 20, 0.7, 30)


def test_who_has_all_changes_and_asks_again_causes_no_read_on_sqlite(alone: Metrics) -> None:
    validate(alone, alone.trial, 0.5)
    newest = changes(alone).latest_revision
    changes(alone, after=newest)
    with statements() as seen:
        assert changes(alone, after=newest) == api.ListTrialValidationsResponse(latest_revision=newest)
    assert not seen or alone.database.url.startswith("postgresql")
    validate(alone, alone.trial, 0.6, first=1)
    assert [one.best_value for one in changes(alone, after=newest).trials] == [0.6]


def test_only_changed_trials_are_listed_again_and_in_the_order_of_their_changes(alone: Metrics) -> None:
    first, second = str(uuid.uuid4()), str(uuid.uuid4())
    validate(alone, first, 0.1)
    validate(alone, second, 0.2)
    before = changes(alone)
    assert [one.trial_id for one in before.trials] == [first, second]
    assert not changes(alone, after=before.latest_revision).trials
    alone.report(("training", 99, {"loss": 1.0}), first=1, trial=second)
    assert not changes(alone, after=before.latest_revision).trials, "training changes no validation"
    validate(alone, first, 0.05, first=1)
    after = changes(alone, after=before.latest_revision)
    assert [(one.trial_id, one.best_value, one.last_value) for one in after.trials] == [(first, 0.1, 0.05)]
    assert after.latest_revision == after.trials[0].revision > before.latest_revision


def test_a_page_ends_where_it_is_full_and_the_next_begins_behind_it(alone: Metrics) -> None:
    trials = [str(uuid.uuid4()) for _ in range(5)]
    for trial in trials:
        validate(alone, trial, 0.5)
    seen: list[str] = []
    after = 0
    while page := changes(alone, after=after, size=2).trials:
        assert len(page) <= 2
        seen += [one.trial_id for one in page]
        after = page[-1].revision
    assert seen == trials


def test_a_last_value_that_is_not_finite_has_steps_and_no_value(alone: Metrics) -> None:
    validate(alone, alone.trial, 0.5, math.nan)
    (found,) = changes(alone).trials
    assert not found.HasField("last_value")
    assert (found.last_steps, found.best_value) == (20, 0.5)
    validate(alone, alone.trial, math.inf, first=2)
    (found,) = changes(alone).trials
    assert not found.HasField("last_value")
    assert found.last_steps == 30


def test_before_the_first_finite_value_there_is_a_last_and_no_best(alone: Metrics) -> None:
    validate(alone, alone.trial, math.nan)
    (found,) = changes(alone).trials
    assert not found.HasField("best_value")
    assert not found.HasField("best_steps")
    assert not alone.best().HasField("experiment_best")


def test_what_a_later_run_supersedes_is_neither_the_best_nor_the_last(alone: Metrics) -> None:
    validate(alone, alone.trial, 0.5, 0.6, 0.9)
    alone.report(("validation", 20, {"accuracy": 0.4}), run=2)
    (found,) = changes(alone).trials
    assert (found.best_value, found.best_steps, found.last_value, found.last_steps) == (0.5, 10, 0.4, 20)
    validate(alone, alone.trial, 0.95, first=3)
    (found,) = changes(alone).trials
    assert (found.best_value, found.last_value) == (0.5, 0.4), "a late report of the superseded run"


def test_a_deleted_experiment_is_not_listed_and_its_revisions_are_not_given_again(alone: Metrics) -> None:
    validate(alone, alone.trial, 0.5)
    before = changes(alone).latest_revision
    alone.delete()
    assert not changes(alone).trials
    other = alone.anew()
    validate(other, other.trial, 0.5)
    (found,) = changes(alone, after=before).trials
    assert found.trial_id == other.trial


@pytest.mark.integration
def test_a_reader_of_replicas_that_write_at_once_misses_no_change(postgres_server: PostgresServer) -> None:
    database_url = postgres_server.clean_database()
    trials = [str(uuid.uuid4()) for _ in range(4)]
    rounds = 25

    async def write(service: Metrics, mine: Sequence[str]) -> None:
        for place in range(rounds):
            reports = blocks_of([("validation", place + 1, {"accuracy": float(place)})], first=place)
            for trial in mine:
                request = service.request(reports, first=place, trial=trial)
                while True:
                    try:
                        await service.servicer.IngestReports(request, None)
                        break
                    except (ConflictError, UnavailableError):
                        continue

    with metrics_on(database_url) as one, metrics_on(database_url) as other:
        other.experiment = one.experiment
        seen: dict[str, float] = {}

        async def scenario() -> None:
            writers = asyncio.gather(write(one, trials[:2]), write(other, trials[2:]))
            after = 0
            while not writers.done() or set(seen.values()) != {float(rounds - 1)}:
                request = api.ListTrialValidationsRequest(after_revision=after)
                for found in (await one.servicer.ListTrialValidations(request, None)).trials:
                    seen[found.trial_id] = found.last_value
                    after = found.revision
                await asyncio.sleep(0)
            await writers

        asyncio.run(asyncio.wait_for(scenario(), 60))
        assert seen == dict.fromkeys(trials, float(rounds - 1))


def test_the_upgrade_keeps_the_best_and_finds_the_last_in_the_streams(database_url: str) -> None:
    experiment, trial = str(uuid.uuid4()), str(uuid.uuid4())
    database = Database(database_url, name="metrics")
    try:
        migrations.upgrade(database.engine, package="resolute_metrics", schema="metrics", revision="0002")
        packed = aggregates.extend(aggregates.empty(2), np.array([[0.25, 7.0]]), last=0)
        with database.engine.begin() as connection:
            old = sa.MetaData()
            old.reflect(connection)

            def insert(table: str, **values: Any) -> None:
                connection.execute(old.tables[table].insert(), values)

            insert("experiments", experiment_key=1, experiment_id=experiment)
            insert("trials", trial_key=1, trial_id=trial, experiment_key=1)
            insert(
                "bests",
                trial_key=1,
                experiment_key=1,
                rank=-0.75,
                value=0.75,
                metric="accuracy",
                run=1,
                steps=20,
            )
            insert(
                "streams",
                stream_key=1,
                trial_key=1,
                run=2,
                source_key=1,
                group_name="validation",
                names_digest="x",
                names='["accuracy", "loss"]',
                first_step=30,
                last_step=40,
                last_sequence=9,
                small_blocks=0,
                aggregates=aggregates.encode(packed),
                others="{}",
                last_time=0.0,
            )
    finally:
        database.close()
    with metrics_on(database_url) as service:
        (found,) = changes(service).trials
        assert (found.trial_id, found.best_value, found.best_steps) == (trial, 0.75, 20)
        assert (found.last_value, found.last_steps) == (0.25, 40)
        service.experiment, service.trial = experiment, trial
        assert service.best().experiment_best.value == 0.75
