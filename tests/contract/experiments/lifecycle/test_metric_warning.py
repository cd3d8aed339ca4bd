"""The warning that no trial reports the metric of its search, while it trains and at its end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from contract.experiments.lifecycle.test_lifecycle import NOW, Store
from support.clocks import ManualClock
from support.databases.prepared import migrate

from resolute.api.metrics.v1 import metrics_service_pb2, summary_pb2
from resolute.api.searcher.v1 import event_pb2, searcher_service_pb2
from resolute.errors import UnavailableError
from resolute_experiments.lifecycle import commands
from resolute_experiments.lifecycle.metric_warning import PAUSED, MetricWarning
from resolute_experiments.states import ExperimentState
from resolute_experiments.store import experiments, trials
from resolute_serving.database.engine import Database
from resolute_serving.notifier import Notifier


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    made = Database(database_url, name="experiments")
    migrate(made.engine, package="resolute_experiments", schema="experiments")
    yield made
    made.close()


class Metrics:
    """A metrics service that knows the names of some validation metrics."""

    def __init__(self, *names: str, whole: bool = True, away: bool = False, texts: bool = False) -> None:
        self.names, self.whole, self.away, self.texts = names, whole, away, texts
        self.calls = 0

    async def ListSummaries(self, request: Any, timeout: float) -> Any:  # noqa: N802 - the contract names it
        self.calls += 1
        if self.away:
            raise UnavailableError("metrics restarts")
        assert list(request.groups) == ["validation"]
        asked = set(request.names)
        names = (
            [name for name in self.names if name in asked]
            if asked
            else self.names[: None if self.whole else 1]
        )
        return metrics_service_pb2.ListSummariesResponse(
            summaries=[summary_pb2.Summary(name=name, count=0 if self.texts else 3) for name in names],
            next_page_token="" if self.whole or asked else "more",
        )


class Searcher:
    """A searcher service of which the log of a search has some completed operations, on a late page."""

    def __init__(self, completed: int) -> None:
        self.completed = completed

    async def ListEvents(self, request: Any, timeout: float) -> Any:  # noqa: N802 - the contract names it
        assert list(request.kinds) == ["validation_completed"]
        if not request.page_token:
            return searcher_service_pb2.ListEventsResponse(next_page_token="more")
        return searcher_service_pb2.ListEventsResponse(entries=[event_pb2.LogEntry()] * self.completed)


class Checked:
    """One experiment whose metric is ``loss``, and the warning of it."""

    def __init__(self, database: Database, metrics: Metrics, *, completed: int = 0, **searcher: Any) -> None:
        self.store, self.metrics, self.clock = Store(database.engine), metrics, ManualClock()
        config = {"searcher": {"name": "single", "metric": "loss", "max_length": 1, **searcher}}
        self.store.run(lambda c: experiments.update(c, self.store.experiment_id, config=config))
        self._warning = MetricWarning(
            database,
            clients=SimpleNamespace(metrics=metrics, searcher=Searcher(completed)),  # type: ignore[arg-type]
            notifier=Notifier(),
            clock=self.clock,
            timing=lambda: NOW,
        )

    def refresh(self, *, ending: bool = False) -> str:
        self.clock.advance(60.0)
        asyncio.run(self._warning.refresh(self.store.experiment(), ending=ending))
        return self.store.experiment().warning

    def state(self, state: ExperimentState) -> None:
        self.store.run(lambda c: experiments.update(c, self.store.experiment_id, state=state.value))


def test_validations_under_other_names_are_warned_of_while_trials_train(database: Database) -> None:
    checked = Checked(database, Metrics("val_loss", "acc"))
    expected = (
        "no trial has reported searcher.metric 'loss'; validations have: acc, val_loss; "
        "did you mean 'val_loss'?"
    )
    before = checked.store.experiment().revision
    assert checked.refresh() == expected
    after = checked.store.experiment().revision
    assert after > before
    assert checked.refresh() == expected
    assert checked.store.experiment().revision == after, "nothing changed"


def test_a_metric_that_comes_later_takes_the_warning_back_for_good(database: Database) -> None:
    checked = Checked(database, Metrics("acc"))
    trial_id = checked.store.create_trial()
    assert checked.refresh()
    checked.store.run(lambda c: trials.update(c, trials.get(c, trial_id=trial_id), last_steps=5))
    assert checked.refresh() == ""
    calls = checked.metrics.calls
    assert checked.refresh(ending=True) == ""
    assert checked.metrics.calls == calls


@pytest.mark.parametrize("whole", [True, False])
def test_a_metric_that_is_text_is_no_metric_to_go_by(database: Database, whole: bool) -> None:
    checked = Checked(database, Metrics("a", "loss", whole=whole, texts=True))
    assert checked.refresh() == (
        "no trial has reported searcher.metric 'loss' as a number; "
        "`resolute trial describe ID --metrics-summary` shows what it was"
    )


def test_a_metric_beyond_the_first_page_is_found(database: Database) -> None:
    assert Checked(database, Metrics("a", "loss", whole=False)).refresh() == ""
    assert Checked(database, Metrics("a", "b", whole=False)).refresh()


@pytest.mark.parametrize("searcher", [{"max_length": None}, {"max_length": 4}, {"name": "plugin"}])
def test_no_validation_at_all_is_warned_of_when_a_search_completes(
    database: Database, searcher: dict[str, Any]
) -> None:
    checked = Checked(database, Metrics(), **{"name": "random", **searcher})
    assert checked.refresh() == ""
    checked.state(ExperimentState.STOPPING_ERROR)
    assert checked.refresh(ending=True) == ""
    checked.state(ExperimentState.STOPPING_COMPLETED)
    assert (
        checked.refresh(ending=True)
        == "no trial has reported searcher.metric 'loss', nor any other validation metric; a script "
        "reports it by context.train.report_validation_metrics(steps, {'loss': value}), where context is "
        "what resolute.core.init() gives"
    )


@pytest.mark.parametrize(
    "searcher",
    [
        pytest.param({"max_length": None}, id="one trial that trains by itself"),
        pytest.param(
            {"name": "random", "completed": 1}, id="operations, which are completed with the metric"
        ),
        pytest.param({"name": "custom"}, id="a program that is told what it wants to know"),
    ],
)
def test_some_scripts_may_report_no_validation(database: Database, searcher: dict[str, Any]) -> None:
    checked = Checked(database, Metrics(), **searcher)
    checked.state(ExperimentState.STOPPING_COMPLETED)
    assert checked.refresh(ending=True) == ""


def test_a_trial_that_trains_by_itself_reports_the_metric_if_it_validates(database: Database) -> None:
    other = Checked(database, Metrics("acc"), max_length=None)
    assert other.refresh(ending=True) == "no trial has reported searcher.metric 'loss'; validations have: acc"


def test_a_search_that_goes_by_a_metric_that_does_not_come_is_paused_once(database: Database) -> None:
    checked = Checked(database, Metrics("acc"), name="random", max_length=None)
    warning = "no trial has reported searcher.metric 'loss'; validations have: acc"
    assert checked.refresh() == warning
    assert checked.store.experiment().state is ExperimentState.ACTIVE, "it may come in a call of its own"
    assert checked.refresh() == warning + PAUSED
    assert checked.store.experiment().state is ExperimentState.PAUSED
    assert checked.refresh() == warning + PAUSED
    checked.store.change(commands.activate)
    assert checked.refresh() == warning + PAUSED
    assert checked.store.experiment().state is ExperimentState.ACTIVE, "who activates it, means it"
    assert checked.refresh(ending=True) == warning


@pytest.mark.parametrize("searcher", [{"name": "single", "max_length": None}, {"name": "random"}])
def test_trainings_that_do_not_go_by_the_metric_train_on(
    database: Database, searcher: dict[str, Any]
) -> None:
    checked = Checked(database, Metrics("acc"), **searcher)
    assert checked.refresh() == checked.refresh() != ""
    assert checked.store.experiment().state is ExperimentState.ACTIVE


def test_a_metrics_service_that_is_away_holds_nothing_up(database: Database) -> None:
    checked = Checked(database, Metrics("acc", away=True))
    assert checked.refresh(ending=True) == ""
    checked.metrics.away = False
    assert checked.refresh(ending=True)


def test_the_metrics_service_is_asked_only_now_and_then(database: Database) -> None:
    checked = Checked(database, Metrics())
    checked.refresh()
    asyncio.run(checked._warning.refresh(checked.store.experiment()))
    assert checked.metrics.calls == 1
