"""Where the checkpoints of a run lie, by what its engine, its token and its scripts are told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from support.engines.rows import EXPERIMENT, RUN, TRIAL, Tokens

from resolute.contracts.values import to_mapping
from resolute.errors import FailedPreconditionError
from resolute_engines.protocol import Pool
from resolute_experiments.accounts.store import workspaces
from resolute_experiments.allocations.run_specs import RunSpecs
from resolute_experiments.blueprint import BLUEPRINT
from resolute_experiments.specs.launch import LaunchParameters, launch_spec
from resolute_experiments.store import experiments, runs, schema, trials
from resolute_serving.database.engine import Database
from resolute_serving.database.fence import FencedError
from resolute_serving.server.bootstrap import upgrade

BOXES = Pool(name="boxes", checkpoint_directories=("/other", "/srv/checkpoints"))
TERMS = LaunchParameters(cluster_id="c", lease_ttl=30, preemption_timeout=60, collective_key="")


def shared(**section: Any) -> dict[str, Any]:
    config = {**EXPERIMENT["config"], "searcher": {"name": "single", "metric": "loss"}}
    return {**config, "checkpoint_storage": {"type": "shared_fs", **section}}


class Directories:
    """Makes directories of workspaces, except while it is told to fail."""

    def __init__(self) -> None:
        self.made: list[tuple[str, int]] = []
        self.fails = False

    async def make(self, directory: str, workspace_id: int) -> str:
        """Notes what is asked for."""
        if self.fails:
            raise FailedPreconditionError(f"{directory} is not there")
        self.made.append((directory, workspace_id))
        return f"{directory}/workspaces-c/{workspace_id}"


class Case:
    """A service with one run in a pool."""

    def __init__(self, database: Database, directories: Directories, tokens: Tokens) -> None:
        self.database, self.directories, self.tokens = database, directories, tokens
        self.specs = RunSpecs(
            database=database, make_directory=directories.make, issue_token=tokens.issue, address="a:1"
        )

    async def run(self) -> runs.Run:
        """The run, as it is written."""
        return await self.database.read(lambda c: runs.get(c, "t.1"))

    async def told_to_scripts(self) -> Any:
        """The launch spec of its container."""
        run = await self.run()

        def work(connection: sa.Connection) -> Any:
            return launch_spec(
                run=run,
                containers=runs.containers_of(connection, "t.1"),
                container_rank=0,
                trial=trials.get(connection, trial_id="t"),
                experiment=experiments.get(connection, experiment_id="e"),
                workspace=workspaces.of_experiment(connection, "e"),
                earlier=[],
                terms=TERMS,
            )

        return await self.database.read(work)


@asynccontextmanager
async def case(tmp_path: Path, config: dict[str, Any]) -> AsyncIterator[Case]:
    url = f"sqlite:///{tmp_path}/experiments.sqlite"
    upgrade(BLUEPRINT, url)
    database = Database(url, name="experiments")

    def fill(connection: sa.Connection) -> None:
        for name in ("v", "w"):
            workspaces.create(connection, name, owner="ada", now=1.0)
        experiments.insert(connection, {**EXPERIMENT, "config": config}, b"code")
        trials.insert(connection, TRIAL)
        row = {**RUN, "run": 1, "allocation_id": "t.1", "outcome": "UNSPECIFIED", "resource_pool": "boxes"}
        runs.insert(connection, row, placements=[(0,)])

    await database.write(fill)
    try:
        yield Case(database, Directories(), Tokens())
    finally:
        database.close()


def test_where_trials_see_their_workspace_alone_all_are_told_its_directory(tmp_path: Path) -> None:
    async def body() -> None:
        async with case(tmp_path, shared(host_path="/srv", storage_path="checkpoints/team")) as one:
            number = (await one.database.read(lambda c: workspaces.get(c, name="w"))).number
            place = f"/srv/checkpoints/workspaces-c/{number}"
            spec = await one.specs.allocation(await one.run(), [], pool=BOXES)
            assert one.directories.made == [("/srv/checkpoints", number)]
            assert spec.checkpoint_directory == place
            assert one.tokens.issued[-1].storage == place
            # What has it mounted keeps it, although the experiment goes elsewhere.
            away = sa.update(schema.experiments).values(workspace="v")
            await one.database.write(lambda c: c.execute(away))
            again = await one.specs.allocation(await one.run(), [], pool=BOXES)
            assert (again.checkpoint_directory, len(one.directories.made)) == (place, 1)
            await one.specs.token(await one.run())
            token = one.tokens.issued[-1]
            assert (token.workspace, token.storage) == ("v", place)
            told = await one.told_to_scripts()
            assert told.storage.directory.path == place
            assert to_mapping(told.config)["checkpoint_storage"]["host_path"] == place
            assert await one.database.read(lambda c: runs.checkpoint_directories(c, "e")) == [place]

    asyncio.run(body())


@pytest.mark.parametrize(
    ("config", "pool", "storage"),
    [
        (shared(host_path="/srv/checkpoints"), Pool(name="boxes"), "/srv/checkpoints"),
        (shared(host_path="/elsewhere"), BOXES, "/elsewhere"),
        (EXPERIMENT["config"] | {"searcher": {"name": "single"}}, BOXES, "/checkpoints"),
    ],
)
def test_elsewhere_checkpoints_lie_where_the_config_says(
    tmp_path: Path, config: dict[str, Any], pool: Pool, storage: str
) -> None:
    async def body() -> None:
        async with case(tmp_path, config) as one:
            spec = await one.specs.allocation(await one.run(), [], pool=pool)
            assert (spec.checkpoint_directory, spec.config) == ("", config)
            assert one.tokens.issued[-1].storage == storage
            assert one.directories.made == []
            assert await one.database.read(lambda c: runs.checkpoint_directories(c, "e")) == []

    asyncio.run(body())


def test_a_run_whose_directory_cannot_be_made_is_not_launched_without_one(tmp_path: Path) -> None:
    async def body() -> None:
        async with case(tmp_path, shared(host_path="/srv/checkpoints")) as one:
            one.directories.fails = True
            with pytest.raises(FailedPreconditionError, match="/srv/checkpoints is not there"):
                await one.specs.allocation(await one.run(), [], pool=BOXES)
            assert one.tokens.issued == []
            one.directories.fails = False
            spec = await one.specs.allocation(await one.run(), [], pool=BOXES)
            assert spec.checkpoint_directory

    asyncio.run(body())


def test_a_process_that_serves_no_longer_is_given_no_run_to_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        async with case(tmp_path, shared(host_path="/srv")) as one:
            run = await one.run()

            async def fenced(work: object) -> None:
                raise FencedError("another process serves this cluster now")

            monkeypatch.setattr(one.database, "read_fenced", fenced)
            with pytest.raises(FencedError):
                await one.specs.allocation(run, [], pool=BOXES)

    asyncio.run(body())
