"""Pages and watches of experiments take as many statements with a hundred rows as with ten."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

import pytest
from contract.experiments.accounts.test_statements import EVERYTHING, FEW, MANY, statements
from contract.experiments.lifecycle.test_lifecycle import NOW, experiment_row
from sqlalchemy.engine import Connection
from support.clocks import ManualClock
from support.databases.prepared import migrate
from support.services.experiments_context import context

from resolute.api.experiments.v1 import experiments_service_pb2, jobs_service_pb2, trials_service_pb2
from resolute.api.searcher.v1 import action_pb2
from resolute_experiments.context import ServiceContext
from resolute_experiments.lifecycle import actions
from resolute_experiments.lifecycle.action_inputs import ActionInputs
from resolute_experiments.scheduling.wait_reasons import WaitReasons
from resolute_experiments.servicers.experiments import ExperimentsServicer
from resolute_experiments.servicers.jobs import JobsServicer
from resolute_experiments.servicers.trials import TrialHandlers
from resolute_experiments.store import experiments
from resolute_serving.database.engine import Database

FIRST = str(uuid.uuid4())
"""The experiment that all trials belong to."""
SEARCHER = {"name": "single", "metric": "loss", "smaller_is_better": True}


@pytest.fixture
def core(database_url: str) -> Iterator[ServiceContext]:
    database = Database(database_url, name="experiments")
    migrate(database.engine, package="resolute_experiments", schema="experiments")
    yield context(database, ManualClock())
    database.close()


def fill(connection: Connection, numbers: Iterable[int]) -> None:
    for number in numbers:
        add(connection, number)


def add(connection: Connection, number: int) -> None:
    """Writes an experiment, and a trial of the first one."""
    row = experiment_row(FIRST if not number else str(uuid.uuid4()))
    config = row["config"] | {"searcher": SEARCHER}
    experiments.insert(connection, row | {"config": config, "state": "ACTIVE"}, b"")
    create = action_pb2.Action.CreateTrial(trial_key=str(uuid.uuid4()), trial_id=str(uuid.uuid4()))
    action = action_pb2.Action(sequence=number + 1, create_trial=create)
    actions.apply(connection, FIRST, [action], NOW, ActionInputs())


def looks(core: ServiceContext) -> dict[str, Callable[[], Awaitable[int]]]:
    """Calls that each return how many rows they gave."""
    unused: Any = None
    reasons = WaitReasons()
    experiment_handlers = ExperimentsServicer(core, wait_reasons=reasons, submissions=unused, adopt=unused)
    job_handlers = JobsServicer(core, wait_reasons=reasons)
    trial_handlers = TrialHandlers(
        core,
        wait_reasons=reasons,
        signer=unused,
        reader=unused,
        heartbeats=unused,
        storage_quota=unused,
        storage_roots=unused,
        token_ttl=1.0,
    )

    async def list_experiments() -> int:
        request = experiments_service_pb2.ListExperimentsRequest(page_size=EVERYTHING)
        return len((await experiment_handlers.ListExperiments(request, None)).experiments)

    async def list_trials() -> int:
        request = trials_service_pb2.ListTrialsRequest(page_size=EVERYTHING, include_runs=True)
        request.experiment.number = 1
        return len((await trial_handlers.ListTrials(request, None)).trials)

    async def list_jobs() -> int:
        request = jobs_service_pb2.ListJobsRequest(page_size=EVERYTHING)
        return len((await job_handlers.ListJobs(request, None)).jobs)

    async def watch() -> int:
        numbers = await core.database.read(lambda c: sorted(each.number for each in experiments.live(c)))
        request = experiments_service_pb2.WatchExperimentsRequest()
        for number in numbers:
            request.experiments.add(key=str(number)).experiment.number = number
        seen: set[str] = set()
        async for response in experiment_handlers.WatchExperiments(request, None):
            seen.add(response.key)
            if len(seen) == len(numbers):
                break
        return len(seen)

    return {"experiments": list_experiments, "trials": list_trials, "jobs": list_jobs, "watch": watch}


async def counted(core: ServiceContext, *, rows: int) -> dict[str, int]:
    """How many statements each call takes."""
    counts: dict[str, int] = {}
    for name, look in looks(core).items():
        with statements() as seen:
            assert await look() == rows
        assert not any("notes" in statement for statement in seen), "notes may be long, and lists have none"
        counts[name] = len(seen)
    return counts


def test_rows_are_not_asked_for_one_by_one(core: ServiceContext) -> None:
    async def scenario() -> None:
        await core.database.write(lambda c: fill(c, range(FEW)))
        few = await counted(core, rows=FEW)
        await core.database.write(lambda c: fill(c, range(FEW, MANY)))
        assert await counted(core, rows=MANY) == few

    asyncio.run(scenario())
