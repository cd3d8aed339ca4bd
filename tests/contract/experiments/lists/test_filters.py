"""Filters, orders and totals of experiments, on each database."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from contract.experiments.lifecycle.test_lifecycle import NOW, experiment_row
from sqlalchemy.engine import Connection
from support.clocks import ManualClock
from support.databases.prepared import migrate
from support.services.experiments_context import context

from resolute.api.experiments.v1 import experiment_pb2
from resolute.api.experiments.v1 import experiments_service_pb2 as pb2
from resolute.api.searcher.v1 import action_pb2
from resolute.contracts.values import to_value
from resolute.errors import InvalidArgumentError
from resolute_experiments.context import ServiceContext
from resolute_experiments.lifecycle import actions
from resolute_experiments.lifecycle.action_inputs import ActionInputs
from resolute_experiments.scheduling.wait_reasons import WaitReasons
from resolute_experiments.servicers.experiments import ExperimentsServicer
from resolute_experiments.states import ExperimentEvent
from resolute_experiments.store import experiments, trials
from resolute_experiments.store.copies import validations
from resolute_experiments.store.copies.validations import TrialValidations
from resolute_experiments.transitions.experiment import transition_experiment
from resolute_serving.context import Role, User, current_principal
from resolute_serving.database.engine import Database

DAY = 86400.0
MADE: list[dict[str, Any]] = [
    # Smaller is better.
    {"name": "Digits small", "labels": ["base line"], "owner": "ada", "best": [0.3, 0.1]},
    {"name": "digits 100%", "labels": [], "owner": "bob", "best": [0.2], "state": "ERROR"},
    # Larger is better.
    {"name": "vision", "labels": ["x"], "owner": "ada", "best": [0.7, 0.9], "metric": "accuracy"},
    {"name": "empty", "labels": [], "owner": "ada", "best": [], "state": "COMPLETED", "archived": True},
]
HPARAMS = {"lr": 0.01, "optimizer": {"name": "adam", "on": True}, "dotted.name": 5, "kind": "7"}


@pytest.fixture
def core(database_url: str) -> Iterator[ServiceContext]:
    database = Database(database_url, name="experiments")
    migrate(database.engine, package="resolute_experiments", schema="experiments")
    core = context(database, ManualClock())
    asyncio.run(database.write(fill))
    yield core
    database.close()


def fill(connection: Connection) -> None:
    for at, made in enumerate(MADE):
        metric = made.get("metric", "loss")
        searcher = {"name": "single", "metric": metric, "smaller_is_better": metric == "loss"}
        row = experiment_row(str(uuid.uuid4()))
        row["config"] |= {"searcher": searcher}
        row |= {name: value for name, value in made.items() if name not in {"best", "metric", "state"}}
        row |= {"created_at": at * DAY, "progress": at / 4}
        experiment = experiments.insert(connection, row, b"")
        validate(connection, experiment, made["best"])
        experiments.update(connection, experiment.id, state=made.get("state", "ACTIVE"))


def validate(connection: Connection, experiment: experiments.Experiment, best: list[float | None]) -> None:
    """Creates trials, each with a best value, and hyperparameters for the last of them."""
    for at, value in enumerate(best):
        trial_id = str(uuid.uuid4())
        create = action_pb2.Action.CreateTrial(
            trial_key=str(uuid.uuid4()),
            trial_id=trial_id,
            hparams=to_value(HPARAMS if at + 1 == len(best) else {"lr": 1.0}),
        )
        action = action_pb2.Action(sequence=experiment.action_cursor + at + 1, create_trial=create)
        actions.apply(connection, experiment.id, [action], NOW, ActionInputs())
        best_of(connection, experiment, trial_id, value)


def best_of(
    connection: Connection, experiment: experiments.Experiment, trial_id: str, value: float | None
) -> None:
    change = TrialValidations(
        trial_id=trial_id,
        experiment_id=experiment.id,
        best_value=value,
        best_steps=None if value is None else 5,
        last_value=None,
        last_steps=9,
    )
    validations.store(connection, [change], revision=1)


def listed(core: ServiceContext, filter_: str = "", **fields: Any) -> pb2.ListExperimentsResponse:
    unused: Any = None
    handlers = ExperimentsServicer(core, wait_reasons=WaitReasons(), submissions=unused, adopt=unused)
    request = pb2.ListExperimentsRequest(filter=filter_, **fields)

    async def as_ada() -> pb2.ListExperimentsResponse:
        current_principal.set(User("ada", Role.ADMIN))
        return await handlers.ListExperiments(request, None)

    return asyncio.run(as_ada())


def numbers(core: ServiceContext, filter_: str = "", **fields: Any) -> list[int]:
    return sorted(one.number for one in listed(core, filter_, **fields).experiments)


@pytest.mark.parametrize(
    ("filter_", "expected"),
    [
        ("", [1, 2, 3, 4]),
        ("DIGITS", [1, 2]),
        ("digits small", [1]),
        ('"100%"', [2]),
        ("state = failed or state:completed", [2, 4]),
        ("state != failed", [1, 3, 4]),
        ("state = running", []),
        ("owner = me", [1, 3, 4]),
        ("not owner:me", [2]),
        ("user ~ B", [2]),
        ('label = "base line"', [1]),
        ("label ~ LINE or label=x", [1, 3]),
        ("label != x", [1, 2, 4]),
        ("loss < 0.15", [1]),
        ("validation/loss <= 0.2", [1, 2]),
        ("accuracy > 0.8", [3]),
        ("metric = accuracy", [3]),
        ("best > 0.15", [2, 3]),
        ("lr = 1e-2", [1, 2, 3]),
        ("lr = 1", [1, 3]),
        ("lr > 0.5 and loss < 1", [1]),
        ("hparams.optimizer.name = adam", [1, 2, 3]),
        ("optimizer.on = true", [1, 2, 3]),
        ("optimizer.name ~ DA and owner = bob", [2]),
        ("dotted.name >= 5", [1, 2, 3]),
        ("kind = 7", []),
        ("kind ~ 7", [1, 2, 3]),
        ("trials = 2", [1, 3]),
        ("trials < 1", [4]),
        ("progress >= 50%", [3, 4]),
        ("created < 1970-01-02", [1]),
        ("created > 1970-01-02T12:00", [3, 4]),
        ("id = 3", [3]),
        ("id = 2.5", []),
        ("id != 2.5 and id > 2.5", [3, 4]),
        ("id < 1e30", [1, 2, 3, 4]),
        ("trials > 1.5", [1, 3]),
        ("archived = yes", [4]),
        ("archived != yes", [1, 2, 3]),
    ],
)
def test_a_filter_keeps_what_it_says(core: ServiceContext, filter_: str, expected: list[int]) -> None:
    assert numbers(core, filter_) == expected


def test_killed_is_a_state_of_its_own(core: ServiceContext) -> None:
    def end(connection: Connection) -> None:
        for number, event in ((1, ExperimentEvent.KILL), (3, ExperimentEvent.CANCEL)):
            for happens in (event, ExperimentEvent.LAST_TRIAL_ENDED):
                transition_experiment(connection, experiments.get(connection, number=number), happens, NOW)

    asyncio.run(core.database.write(end))
    assert [numbers(core, f"state = {word}") for word in ("killed", "canceled")] == [[1], [3]]
    assert numbers(core, "state != killed") == [2, 3, 4]
    with pytest.raises(InvalidArgumentError, match="compare it by = or !="):
        listed(core, "state ~ killed")
    totals = listed(core, include_totals=True).totals.states
    assert [one.killed for one in totals if one.state == experiment_pb2.EXPERIMENT_STATE_CANCELED] == [
        False,
        True,
    ]


def test_a_text_is_found_in_letters_beyond_ascii(core: ServiceContext) -> None:
    def rename(connection: Connection) -> None:
        found = experiments.get(connection, number=1)
        experiments.update(connection, found.id, name="ÉTUDE Straße 50%", labels=["Größe"])

    asyncio.run(core.database.write(rename))
    for filter_ in ("ÉTUDE", "name ~ ÉTUDE", "name ~ Étude and straße", "label ~ GRöSSE or label ~ GRöße"):
        assert numbers(core, filter_) == [1], filter_
    assert numbers(core, "name ~ ETUDE") == []
    assert numbers(core, name_contains="ÉtUDE STRAß") == [1]


def test_a_name_that_nothing_has_is_refused_and_one_that_something_has_is_not(core: ServiceContext) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"character 8: los: there is no such field.*fields are archived"
    ):
        listed(core, "vision los < 0.1")
    with pytest.raises(
        InvalidArgumentError, match=r"hyperparameter; did you mean 'state'\? fields are archived"
    ):
        listed(core, "Stat = failed")
    assert numbers(core, "loss < -1") == []
    assert numbers(core, "lr > 100") == []


def test_archived_ones_are_listed_as_the_filter_says(core: ServiceContext) -> None:
    assert numbers(core, archived=False) == [1, 2, 3]
    assert numbers(core, "archived:any", archived=False) == [1, 2, 3, 4]
    assert numbers(core, "empty archived:yes", archived=False) == [4]


@pytest.mark.parametrize("size", [1, 100])
def test_the_best_of_each_metric_come_first_and_those_without_one_last(
    core: ServiceContext, size: int
) -> None:
    for order, expected in (
        ("searcher_metric, best_validation", [3, 1, 2, 4]),
        ("best_validation", [3, 1, 2, 4]),
        ("best_validation desc", [2, 1, 3, 4]),
    ):
        found: list[int] = []
        token = ""
        while True:
            page = listed(core, "archived:any", order_by=order, page_size=size, page_token=token)
            found += [one.number for one in page.experiments]
            token = page.next_page_token
            if not token:
                break
        assert found == expected, order


def test_an_experiment_has_the_best_validation_of_its_trials_also_after_it_was_taken_back(
    core: ServiceContext,
) -> None:
    first, second, third, last = sorted(listed(core).experiments, key=lambda one: one.number)
    assert (first.best_validation.value, first.best_validation.steps, first.best_trial_number) == (0.1, 5, 2)
    assert (third.best_validation.value, third.best_trial_number) == (0.9, 5)
    assert second.best_trial_number == 3
    assert not last.HasField("best_validation")

    def take_back(connection: Connection) -> None:
        experiment = experiments.get(connection, number=1)
        best_of(connection, experiment, trials.get(connection, number=2).id, None)

    asyncio.run(core.database.write(take_back))
    [first] = listed(core, "id = 1").experiments
    assert (first.best_validation.value, first.best_trial_number) == (0.3, 1)


@pytest.mark.parametrize(("number", "first", "value"), [(1, 1, 0.1), (3, 4, 0.9)], ids=["smaller", "larger"])
def test_of_equal_trials_the_first_is_the_best(
    core: ServiceContext, number: int, first: int, value: float
) -> None:
    def level(connection: Connection) -> None:
        experiment = experiments.get(connection, number=number)
        best_of(connection, experiment, trials.get(connection, number=first).id, value)

    asyncio.run(core.database.write(level))
    [one] = listed(core, f"id = {number}").experiments
    assert (one.best_validation.value, one.best_trial_number) == (value, first)


def test_totals_count_all_that_match_on_whichever_page(core: ServiceContext) -> None:
    response = listed(core, "digits or vision", include_totals=True, page_size=1)
    assert response.totals.trials == 5
    counts = {
        experiment_pb2.ExperimentState.Name(one.state)[17:]: one.count for one in response.totals.states
    }
    assert counts == {"ACTIVE": 2, "ERROR": 1}
    assert not listed(core).HasField("totals")


def test_an_empty_list_has_totals_too(core: ServiceContext) -> None:
    response = listed(core, "zebra", include_totals=True)
    assert (list(response.experiments), response.totals.trials, list(response.totals.states)) == ([], 0, [])
