"""The copy of validations and steps in the rows of trials, and the migrations that make room for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
from contract.experiments.lifecycle.test_lifecycle import NOW, Store
from support.clocks import ManualClock
from support.databases.prepared import migrate

from resolute.api.metrics.v1 import metrics_service_pb2, validation_pb2
from resolute_experiments.lifecycle.metrics_copy import MetricsCopy
from resolute_experiments.states import TrialEvent
from resolute_experiments.store import trials
from resolute_experiments.store.copies import validations
from resolute_experiments.transitions import transition_trial
from resolute_serving.database import migrations
from resolute_serving.database.engine import Database
from resolute_serving.notifier import Notifier


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    made = Database(database_url, name="experiments")
    migrate(made.engine, package="resolute_experiments", schema="experiments")
    yield made
    made.close()


class Metrics:
    """A metrics service with some changes, which counts how often it is asked."""

    def __init__(self) -> None:
        self.changes: list[validation_pb2.TrialValidations] = []
        self.latest = 0
        self.calls = 0
        self.steps: dict[str, metrics_service_pb2.ListLastStepsResponse.LastSteps] = {}

    def reach(self, trial: str, steps: int, *, time: float, run: int = 1) -> None:
        self.steps[trial] = metrics_service_pb2.ListLastStepsResponse.LastSteps(
            trial_id=trial, run=run, steps=steps, time=time
        )

    async def ListLastSteps(self, request: Any, timeout: float) -> Any:  # noqa: N802 - the contract names it
        found = [self.steps[one] for one in request.trial_ids if one in self.steps]
        return metrics_service_pb2.ListLastStepsResponse(trials=found)

    def change(self, store: Store, trial: str, *, best: float | None, last: float | None) -> None:
        self.latest += 1
        self.changes = [one for one in self.changes if one.trial_id != trial]
        self.changes.append(
            validation_pb2.TrialValidations(
                trial_id=trial,
                experiment_id=store.experiment_id,
                metric="accuracy",
                best_value=best,
                best_steps=None if best is None else 10 * self.latest,
                last_value=last,
                last_steps=20 * self.latest,
                revision=self.latest,
            )
        )

    async def ListTrialValidations(self, request: Any, timeout: float) -> Any:  # noqa: N802 - the contract names it
        self.calls += 1
        found = [one for one in self.changes if one.revision > request.after_revision]
        return metrics_service_pb2.ListTrialValidationsResponse(
            trials=found[: request.page_size], latest_revision=self.latest
        )


def refresh(database: Database, metrics: Metrics) -> None:
    clients: Any = SimpleNamespace(metrics=metrics)

    async def body() -> None:
        await MetricsCopy(database, clients=clients, notifier=Notifier(), clock=ManualClock()).refresh()

    asyncio.run(body())


def happen(store: Store, trial: str, event: TrialEvent) -> None:
    store.run(lambda c: transition_trial(c, trials.get(c, trial_id=trial), event, NOW))


def test_changes_are_copied_once_and_raise_the_revision_that_watchers_compare(database: Database) -> None:
    store, metrics = Store(database.engine), Metrics()
    first, second = store.create_trial(), store.create_trial()
    metrics.change(store, first, best=0.5, last=None)
    metrics.change(store, second, best=None, last=0.25)
    before = store.experiment().revision
    refresh(database, metrics)
    trial = store.trial(first)
    assert (trial.best_value, trial.best_steps, trial.last_value, trial.last_steps) == (0.5, 10, None, 20)
    assert store.trial(second).last_value == 0.25
    assert trial.revision > before
    assert store.run(validations.cursor) == 2
    calls, revision = metrics.calls, store.experiment().revision
    refresh(database, metrics)
    assert metrics.calls == calls + 1, "one call, however many trials there are"
    assert store.experiment().revision == revision


def test_the_steps_of_a_run_are_copied_with_their_rate_until_one_look_after_its_end(
    database: Database,
) -> None:
    store, metrics = Store(database.engine), Metrics()
    trial = store.create_trial()
    metrics.reach(trial, 1, time=100.0)
    refresh(database, metrics)
    assert store.trial(trial).reported_steps is None, "it has no run yet"
    happen(store, trial, TrialEvent.PLACE)
    refresh(database, metrics)
    first = store.trial(trial)
    assert (first.reported_steps, first.reported_at, first.steps_per_second) == (1, 100.0, None)
    metrics.reach(trial, 21, time=110.0)
    refresh(database, metrics)
    second = store.trial(trial)
    assert (second.reported_steps, second.steps_per_second) == (21, 2.0)
    assert second.revision > first.revision, "watchers hear of it"
    metrics.reach(trial, 21, time=115.0)
    refresh(database, metrics)
    assert store.trial(trial) == second, "a validation at the same steps is no progress"
    metrics.reach(trial, 26, time=120.0)
    refresh(database, metrics)
    rate = store.trial(trial).steps_per_second
    assert rate is not None
    assert 0.5 < rate < 2.0, "the time of the validation counts, and the rate changes slowly"
    metrics.reach(trial, 40, time=130.0)
    happen(store, trial, TrialEvent.RUN_FINISHED)
    refresh(database, metrics)
    assert store.trial(trial).reported_steps == 40, "what came after the last look is not lost"
    metrics.reach(trial, 99, time=140.0)
    refresh(database, metrics)
    assert store.trial(trial).reported_steps == 40, "nobody asks for ever"


def test_a_later_run_begins_its_rate_anew(database: Database) -> None:
    store, metrics = Store(database.engine), Metrics()
    trial = store.create_trial()
    happen(store, trial, TrialEvent.PLACE)
    for steps, time in ((10, 100.0), (20, 110.0)):
        metrics.reach(trial, steps, time=time)
        refresh(database, metrics)
    metrics.reach(trial, 15, time=200.0, run=2)
    refresh(database, metrics)
    later = store.trial(trial)
    assert (later.reported_run, later.reported_steps, later.steps_per_second) == (2, 15, None)


def test_one_statement_raises_the_revisions_of_all_experiments_and_no_hyperparameters_are_read(
    database: Database,
) -> None:
    stores, metrics = [Store(database.engine) for _ in range(3)], Metrics()
    trial_ids = [store.create_trial() for store in stores]
    for store, trial in zip(stores, trial_ids, strict=True):
        happen(store, trial, TrialEvent.PLACE)
        metrics.change(store, trial, best=0.5, last=0.5)
        metrics.reach(trial, 1, time=100.0)
    before = [store.experiment().revision for store in stores]
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        statements.append(statement)

    sa.event.listen(database.engine, "before_cursor_execute", note)
    refresh(database, metrics)
    sa.event.remove(database.engine, "before_cursor_execute", note)
    assert [
        store.experiment().revision - revision for store, revision in zip(stores, before, strict=True)
    ] == [3, 3, 3], "one for the validations, one for the steps, one for the best"
    assert sum("experiments SET revision" in one and " IN (" in one for one in statements) == 2
    assert not any("hparams" in one for one in statements)


def test_a_trial_that_is_not_known_here_is_passed_over(database: Database) -> None:
    store, metrics = Store(database.engine), Metrics()
    known = store.create_trial()
    metrics.change(store, "another", best=0.5, last=0.5)
    metrics.change(store, known, best=0.75, last=0.75)
    metrics.changes[0].experiment_id = "another"
    refresh(database, metrics)
    assert store.trial(known).best_value == 0.75


def test_the_copy_is_made_anew_after_the_metrics_were_replaced(database: Database) -> None:
    store, metrics = Store(database.engine), Metrics()
    trial = store.create_trial()
    for value in (0.1, 0.2, 0.3):
        metrics.change(store, trial, best=value, last=value)
    refresh(database, metrics)
    restored = Metrics()
    restored.change(store, trial, best=0.15, last=0.15)
    refresh(database, restored)
    assert store.trial(trial).best_value == 0.15
    assert store.run(validations.cursor) == 1


def test_the_upgrade_keeps_rows_and_begins_the_copy_at_the_first_change(database_url: str) -> None:
    database = Database(database_url, name="experiments")
    try:
        upgrade = {"package": "resolute_experiments", "schema": "experiments"}
        migrations.upgrade(database.engine, **upgrade, revision="0010")
        with database.engine.begin() as connection:
            before = sa.MetaData()
            before.reflect(connection, only=["experiments"])
            table = before.tables["experiments"]
            connection.execute(
                table.insert(),
                {
                    column.name: _any_value(column)
                    for column in table.columns
                    if not column.nullable and column.name != "number" and column.server_default is None
                },
            )
        migrations.upgrade(database.engine, **upgrade)
        with database.engine.begin() as connection:
            row = connection.execute(sa.text("SELECT notes, edit_revision FROM experiments")).one()
            assert tuple(row) == ("", 1)
            assert validations.cursor(connection) == 0
    finally:
        database.close()


def _any_value(column: sa.Column[Any]) -> Any:
    kind = column.type.python_type if not isinstance(column.type, sa.JSON) else dict
    return {str: "x", int: 1, float: 1.0, bool: False, dict: {}}[kind]
