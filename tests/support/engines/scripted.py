"""An engine that says what a test wants, and a cluster with two of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from support.clocks import ManualClock
from support.engines.rows import EXPERIMENT, TRIAL, Tokens, no_directory

from resolute.errors import UnavailableError
from resolute_engines.protocol import (
    AllocationSpec,
    ContainerReport,
    EngineEvent,
    Placement,
    Pool,
    RunFile,
    Slot,
    SlotKind,
)
from resolute_experiments.accounts.store import workspaces
from resolute_experiments.allocations.engine_runs import EngineRuns
from resolute_experiments.allocations.fleet import Fleet
from resolute_experiments.allocations.leases import Leases
from resolute_experiments.allocations.run_spans import RunSpans
from resolute_experiments.allocations.run_specs import RunSpecs
from resolute_experiments.blueprint import BLUEPRINT
from resolute_experiments.context import ServiceContext
from resolute_experiments.scheduling.scheduler import Scheduler
from resolute_experiments.scheduling.wait_reasons import WaitReasons
from resolute_experiments.store import experiments, runs, trials
from resolute_serving.database.engine import Database
from resolute_serving.notifier import Notifier
from resolute_serving.server.bootstrap import upgrade

SLOTS = tuple(Slot(number, SlotKind.CPU) for number in range(2))


class Scripted:
    """An engine that says what a test wants, and notes what it is asked; an absent one refuses everything."""

    def __init__(self, *pools: Pool, prompt: bool = False) -> None:
        self._pools = pools
        self.prompt = prompt
        self.failures: dict[tuple[str, str], Exception] = {}
        """What it raises for what it is asked of an allocation."""
        self.away = False
        self.backlog = ScriptedBacklog(self._note)
        self.run_files = ScriptedFiles(self._note)
        self.asked: list[tuple[str, str]] = []
        self.specs: dict[str, AllocationSpec] = {}
        self.reports: dict[str, ContainerReport] = {}
        self.left: list[str] = []
        """Allocations of which it has something."""
        self.events: asyncio.Queue[EngineEvent | None] = asyncio.Queue()

    def pools(self) -> Sequence[Pool]:
        return self._pools

    def add_pool(self, pool: Pool) -> None:
        """Gives it one more pool."""
        self._pools = (*self._pools, pool)

    def _note(self, what: str, allocation_id: str = "") -> None:
        if self.away:
            raise UnavailableError("nobody answers at far:1")
        self.asked.append((what, allocation_id))
        if failure := self.failures.get((what, allocation_id)):
            raise failure

    async def launch(self, spec: AllocationSpec) -> None:
        self._note("launch", spec.allocation_id)
        self.specs[spec.allocation_id] = spec

    async def inspect(self, allocation_id: str) -> Sequence[ContainerReport]:
        self._note("inspect", allocation_id)
        return [self.reports[allocation_id]] if allocation_id in self.reports else []

    async def stop(self, allocation_id: str, *, grace: float) -> None:
        self._note("stop", allocation_id)

    async def kill(self, allocation_id: str) -> None:
        self._note("kill", allocation_id)

    async def release(self, allocation_id: str, *, token: str = "") -> None:
        self._note("release", allocation_id)

    async def leftovers(self) -> Sequence[str]:
        self._note("leftovers")
        return tuple(self.left)

    async def watch(self) -> AsyncIterator[EngineEvent]:
        while (event := await self.events.get()) is not None:
            yield event

    async def close(self) -> None:
        await self.events.put(None)


class ScriptedBacklog:
    """Its backlog.

    Args:
        note: Notes what it is asked.
    """

    def __init__(self, note: Callable[..., None]) -> None:
        self._note = note

    async def deliver_lines(self, tokens: Mapping[str, str]) -> bool:
        self._note("deliver_lines", *tokens)
        return True

    async def unreported(self) -> Sequence[str]:
        # As the real ones: by what this process has released.
        return ()

    async def seconds(self) -> float:
        self._note("backlog_seconds")
        return 7.0


class ScriptedFiles:
    """The files of its runs.

    Args:
        note: Notes what they are asked.
    """

    def __init__(self, note: Callable[..., None]) -> None:
        self._note = note

    async def list_files(self, allocation_id: str) -> Sequence[RunFile]:
        self._note("list_files", allocation_id)
        return [RunFile("0/work/nan.pt", 7)]

    async def read_file(self, allocation_id: str, path: str, *, offset: int, size: int) -> bytes:
        self._note("read_file", allocation_id)
        return b"weights"[offset : offset + size]


class Cluster:
    """Two engines with a pool each: ``default`` is ours to place, ``far`` has a queue of its own."""

    def __init__(self, database: Database) -> None:
        self.database, self.clock = database, ManualClock()
        self.near = Scripted(Pool(name="default", slots=SLOTS), prompt=True)
        self.far = Scripted(
            Pool(name="far", placement=Placement.ENGINE, slots_per_node=2, most_allocations=2)
        )
        self.core = ServiceContext(
            database=database,
            notifier=Notifier(),
            clock=self.clock,
            cluster_id="cluster",
            preemption_timeout=60.0,
        )
        leases = Leases(self.clock, ttl=30.0)
        self.engines = [
            EngineRuns(
                manager,
                self.core,
                name=name,
                leases=leases,
                specs=RunSpecs(
                    database=database,
                    make_directory=no_directory,
                    issue_token=Tokens().issue,
                    address="a:1",
                ),
                spans=RunSpans({}),
            )
            for name, manager in (("near", self.near), ("distant", self.far))
        ]
        self.fleet = Fleet(self.engines, default_pool="default", pools_are_named=True)
        self.reasons = WaitReasons(self.fleet.wait_reason)
        self.scheduler = Scheduler(
            database,
            fleet=self.fleet,
            notifier=self.core.notifier,
            clock=self.clock,
            wait_reasons=self.reasons,
            preemption_timeout=60.0,
            spans=RunSpans({}),
        )

    async def submit(self, name: str, *, pool: str, slots: int = 1, **config: Any) -> None:
        """An experiment with one trial that waits; both have this name."""
        resources = {"slots_per_trial": slots, "max_slots": None}
        values = {
            **EXPERIMENT,
            "id": name,
            "request_id": name,
            "config": {**EXPERIMENT["config"], "resources": resources, **config},
            "resource_pool": pool,
        }
        await self.database.write(lambda c: experiments.insert(c, values, b"code"))
        await self.add_trial(name, experiment=name)

    async def add_trial(self, name: str, *, experiment: str) -> None:
        """One more trial of an experiment, which waits."""
        trial = {**TRIAL, "id": name, "request_id": name, "experiment_id": experiment, "state": "QUEUED"}
        trial |= {"run": 0, "closed": False}
        await self.database.write(lambda c: trials.insert(c, trial))

    async def experiment(self, name: str) -> experiments.Experiment:
        """An experiment, now."""
        return await self.database.read(lambda c: experiments.get(c, experiment_id=name))

    async def container(self, name: str) -> runs.Container:
        """The one container of the first run of a trial, now."""
        (found,) = await self.database.read(lambda c: runs.containers_of(c, f"{name}.1"))
        return found

    async def trial(self, name: str) -> trials.Trial:
        """A trial, now."""
        return await self.database.read(lambda c: trials.get(c, trial_id=name))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Lets the engines' own tasks run."""
        task = asyncio.create_task(self.fleet.run())
        try:
            yield
        finally:
            self.core.notifier.close()
            await task

    def wakes(self, condition: Any) -> Any:
        """Looks at a condition after every engine was woken."""
        for engine in self.engines:
            engine.wake()
        return condition()


@contextmanager
def fresh_database(folder: Path) -> Iterator[Database]:
    """An empty database of experiments."""
    url = f"sqlite:///{folder}/experiments.sqlite"
    upgrade(BLUEPRINT, url)
    database = Database(url, name="experiments")
    try:
        yield database
    finally:
        database.close()


def scenario(database: Database, body: Callable[[Cluster], Awaitable[None]]) -> None:
    """Runs one case on a cluster within a bound."""

    async def whole() -> None:
        made = Cluster(database)
        await database.write(lambda c: workspaces.create(c, "w", owner="ada", now=1.0))
        await asyncio.wait_for(body(made), 60)

    asyncio.run(whole())
