"""A list builds the message of an experiment once for each version, and shows every change all the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from contract.experiments.accounts.test_statements import statements
from contract.experiments.lifecycle.test_lifecycle import NOW
from contract.experiments.lists.test_list_statements import FIRST, fill
from sqlalchemy.engine import Connection
from support.clocks import ManualClock
from support.databases.prepared import migrate
from support.services.experiments_context import context

from resolute.api.experiments.v1 import experiment_pb2, experiments_service_pb2
from resolute_experiments.accounts.store import projects, users, workspaces
from resolute_experiments.context import ServiceContext
from resolute_experiments.lifecycle import commands
from resolute_experiments.scheduling.wait_reasons import WaitReasons
from resolute_experiments.scheduling.waits import Waits
from resolute_experiments.servicers.experiments import ExperimentsServicer
from resolute_experiments.store import experiments, runs, trials
from resolute_experiments.store.wait_reasons import Wait
from resolute_serving.context import Role, User
from resolute_serving.database.engine import Database

OWNER, WORKSPACE, PROJECT = "ana", "vision", "digits"


@pytest.fixture
def core(database_url: str) -> Iterator[ServiceContext]:
    database = Database(database_url, name="experiments")
    migrate(database.engine, package="resolute_experiments", schema="experiments")
    yield context(database, ManualClock())
    database.close()


@pytest.fixture
def reasons() -> WaitReasons:
    return WaitReasons()


@pytest.fixture
def handlers(core: ServiceContext, reasons: WaitReasons) -> ExperimentsServicer:
    unused: Any = None
    return ExperimentsServicer(core, wait_reasons=reasons, submissions=unused, adopt=unused)


def place(connection: Connection) -> None:
    """Fills the database, and gives the first experiment an owner, a workspace and a project that exist."""
    fill(connection, range(3))
    users.ensure(connection, user=User(OWNER, Role.EDITOR), now=1.0)
    workspaces.create(connection, WORKSPACE, owner=OWNER, now=1.0)
    projects.create(connection, WORKSPACE, PROJECT, owner=OWNER, now=1.0, description="", notes="")
    experiments.update(connection, FIRST, owner=OWNER, workspace=WORKSPACE, project=PROJECT)


def rename_owner(connection: Connection) -> None:
    before = users.get(connection, name=OWNER)
    users.update(connection, before, name="anna", role=before.role, active=True)


def rename_workspace(connection: Connection) -> None:
    before = workspaces.get(connection, name=WORKSPACE)
    workspaces.update(connection, before, name="sight", archived=False)


def rename_project(connection: Connection) -> None:
    before = projects.find(connection, WORKSPACE, PROJECT)
    assert before is not None
    projects.update(connection, before, name="numbers", description="", notes="", archived=False)


def start(connection: Connection) -> None:
    runs.note_start(connection, FIRST, at=5.0)


def end_trial(connection: Connection) -> None:
    trial = trials.of_experiment(connection, FIRST)[0]
    trials.update(connection, trial, state="COMPLETED", ended_at=6.0)


def pause(connection: Connection) -> None:
    commands.pause(connection, experiments.get(connection, experiment_id=FIRST), NOW)


def edit(connection: Connection) -> None:
    experiments.edit(connection, FIRST, description="about digits")


CHANGES = (rename_owner, rename_workspace, rename_project, start, end_trial, pause, edit)


async def listed(handlers: ExperimentsServicer) -> experiment_pb2.Experiment:
    """The first experiment, as a list has it."""
    response = await handlers.ListExperiments(experiments_service_pb2.ListExperimentsRequest(), None)
    return next(message for message in response.experiments if message.experiment_id == FIRST)


async def got(handlers: ExperimentsServicer) -> experiment_pb2.Experiment:
    """The same by itself."""
    request = experiments_service_pb2.GetExperimentRequest(brief=True)
    request.experiment.experiment_id = FIRST
    return (await handlers.GetExperiment(request, None)).experiment


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_list_shows_a_change(
    core: ServiceContext, handlers: ExperimentsServicer, change: Callable[[Connection], None]
) -> None:
    async def scenario() -> None:
        await core.database.write(place)
        before = await listed(handlers)
        assert before == await got(handlers)
        await core.database.write(change)
        after = await listed(handlers)
        assert after == await got(handlers)
        assert after != before

    asyncio.run(scenario())


def test_a_list_shows_why_trials_wait_as_of_now(
    handlers: ExperimentsServicer, core: ServiceContext, reasons: WaitReasons
) -> None:
    async def scenario() -> None:
        await core.database.write(place)
        found = []
        for reason in ("no slot is free", "the pool is too small"):
            reasons.update(Waits({FIRST: Wait(trial_id="", reason=reason)}))
            found.append((await listed(handlers)).wait_reason)
        assert found == ["no slot is free", "the pool is too small"]

    asyncio.run(scenario())


def test_what_has_not_changed_is_not_read_again(core: ServiceContext, handlers: ExperimentsServicer) -> None:
    async def scenario() -> None:
        await core.database.write(place)
        first = await listed(handlers)
        with statements() as seen:
            assert await listed(handlers) == first
        assert len(seen) == 1

    asyncio.run(scenario())
