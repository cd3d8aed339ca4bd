"""Several engines in one cluster: each fails by itself, and runs belong to the engine of their pool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from support.clocks import ManualClock
from support.engines.contract import until
from support.engines.rows import EXPERIMENT, TRIAL, Tokens
from support.waiting import wait_until_async

from resolute.contracts.run.exit_record import ExitRecord
from resolute.errors import UnavailableError
from resolute_experiments.blueprint import BLUEPRINT
from resolute_experiments.context import ServiceContext
from resolute_experiments.notifier import Notifier
from resolute_experiments.resources.engine import Engine
from resolute_experiments.resources.fleet import Fleet
from resolute_experiments.resources.leases import Leases
from resolute_experiments.resources.protocol import (
    AllocationSpec,
    CapacityChange,
    ContainerReport,
    ContainerState,
    EngineEvent,
    EvictionNotice,
    Placement,
    Pool,
    Slot,
    SlotKind,
)
from resolute_experiments.resources.run_spans import RunSpans
from resolute_experiments.retention.garbage_collection import trials_awaiting_reports
from resolute_experiments.scheduling.scheduler import Scheduler
from resolute_experiments.scheduling.wait_reasons import WaitReasons
from resolute_experiments.store import experiments, runs, schema, trials
from resolute_experiments.store.directory import workspaces
from resolute_serving.database.engine import Database
from resolute_serving.server.bootstrap import upgrade

SLOTS = tuple(Slot(number, SlotKind.CPU) for number in range(2))


class Scripted:
    """An engine that says what a test wants, and notes what it is asked; an absent one refuses everything."""

    def __init__(self, *pools: Pool, prompt: bool = False) -> None:
        self._pools = pools
        self.prompt = prompt
        self.away = False
        self.asked: list[tuple[str, str]] = []
        self.specs: dict[str, AllocationSpec] = {}
        self.reports: dict[str, ContainerReport] = {}
        self.events: asyncio.Queue[EngineEvent | None] = asyncio.Queue()

    def pools(self) -> Sequence[Pool]:
        return self._pools

    def _note(self, what: str, allocation_id: str = "") -> None:
        if self.away:
            raise UnavailableError("nobody answers at far:1")
        self.asked.append((what, allocation_id))

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

    async def deliver_lines(self, tokens: Mapping[str, str]) -> bool:
        self._note("deliver_lines", *tokens)
        return True

    async def release(self, allocation_id: str, *, token: str = "") -> None:
        self._note("release", allocation_id)

    async def leftovers(self) -> Sequence[str]:
        self._note("leftovers")
        return ()

    async def unreported(self) -> Sequence[str]:
        self._note("unreported")
        return ()

    async def backlog_seconds(self) -> float:
        self._note("backlog_seconds")
        return 7.0

    async def watch(self) -> AsyncIterator[EngineEvent]:
        while (event := await self.events.get()) is not None:
            yield event

    async def close(self) -> None:
        await self.events.put(None)


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
            Engine(
                manager,
                self.core,
                name=name,
                leases=leases,
                issue_token=Tokens().issue,
                address="a:1",
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

    async def submit(self, name: str, *, pool: str, slots: int = 1) -> None:
        """An experiment with one trial that waits; both have this name."""
        resources = {"slots_per_trial": slots, "max_slots": None}
        values = {
            **EXPERIMENT,
            "id": name,
            "request_id": name,
            "config": {**EXPERIMENT["config"], "resources": resources},
            "resource_pool": pool,
        }
        await self.database.write(lambda c: experiments.insert(c, values, [b"code"]))
        trial = {**TRIAL, "id": name, "request_id": name, "experiment_id": name, "state": "QUEUED"}
        trial |= {"run": 0, "closed": False}
        await self.database.write(lambda c: trials.insert(c, trial))

    async def experiment(self, name: str) -> experiments.Experiment:
        """An experiment, now."""
        return await self.database.read(lambda c: experiments.get(c, experiment_id=name))

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


@pytest.fixture
def cluster(tmp_path: Path) -> Any:
    url = f"sqlite:///{tmp_path}/experiments.sqlite"
    upgrade(BLUEPRINT, url)
    database = Database(url, name="experiments")
    yield database
    database.close()


def scenario(database: Database, body: Any) -> None:
    async def whole() -> None:
        made = Cluster(database)
        await database.write(lambda c: workspaces.create(c, "w", owner="ada", now=1.0))
        await asyncio.wait_for(body(made), 60)

    asyncio.run(whole())


def test_each_run_is_launched_by_the_engine_of_its_pool(cluster: Database) -> None:
    async def body(made: Cluster) -> None:
        await made.submit("here", pool="")
        await made.submit("there", pool="far", slots=3)
        async with made.running():
            await made.scheduler.schedule()
            await wait_until_async(lambda: ("launch", "there.1") in made.far.asked)
        assert ("launch", "here.1") in made.near.asked
        spec = made.far.specs["there.1"]
        assert (spec.pool, spec.placements) == ("far", ((0, 1), (2,))), "two slots a node, as the pool says"
        assert spec.config["checkpoint_storage"]["type"] == "directory"

    scenario(cluster, body)


def test_an_engine_that_does_not_answer_holds_up_nobody_else(cluster: Database) -> None:
    async def body(made: Cluster) -> None:
        made.far.away = True
        await made.submit("there", pool="far")
        await made.submit("here", pool="default")
        async with made.running():
            await made.fleet.recover()
            await made.scheduler.schedule()
            assert ("launch", "here.1") in made.near.asked
            await wait_until_async(made.fleet.problems)
            assert "engine distant does not answer" in made.fleet.problems()[0]
            assert await made.fleet.backlog_seconds() == 7.0

            # What is left of local runs is settled as ever.
            here = await made.database.read(lambda c: runs.get(c, "here.1"))
            await made.fleet.deliver_lines([here])
            await made.fleet.release(here)
            for name, late in (("here", frozenset()), ("there", frozenset({"there"}))):
                experiment = await made.experiment(name)
                found = await trials_awaiting_reports(
                    experiment, unreported=made.fleet.unreported, database=made.database
                )
                assert found == late

            # Its own runs wait for it: none fails because nobody answered.
            there = await made.database.read(lambda c: runs.get(c, "there.1"))
            await made.fleet.kill(there)
            await made.fleet.deliver_lines([there])
            await made.fleet.release(there)
            assert not there.ended
            assert (await made.trial("there")).state.value == "STARTING"
            made.far.away = False
            await wait_until_async(lambda: made.wakes(lambda: ("launch", "there.1") in made.far.asked))
            await wait_until_async(lambda: made.wakes(lambda: ("release", "there.1") in made.far.asked))
            assert made.fleet.problems() == []

    scenario(cluster, body)


def test_what_waits_in_the_queue_of_an_engine_says_why_and_is_taken_back_on_a_signal(
    cluster: Database,
) -> None:
    async def body(made: Cluster) -> None:
        await made.submit("there", pool="far")
        async with made.running():
            await made.scheduler.schedule()
            await wait_until_async(lambda: ("launch", "there.1") in made.far.asked)
            report = ContainerReport(
                allocation_id="there.1",
                container_rank=0,
                state=ContainerState.QUEUED,
                reason="(Priority) behind 4 jobs",
            )
            await made.far.events.put(report)
            await wait_until_async(lambda: made.fleet.wait_reason("there.1"))
            assert made.reasons.explain(await made.trial("there")) == "(Priority) behind 4 jobs"
            await made.far.events.put(EvictionNotice(allocation_id="there.1", reason="the node is drained"))
            await wait_until_async(lambda: made.wakes(lambda: ("stop", "there.1") in made.far.asked))
            run = await made.database.read(lambda c: runs.get(c, "there.1"))
            assert (run.preempt, run.signal_reason) == (True, "MACHINE")
            await made.far.events.put(
                ContainerReport(allocation_id="there.1", container_rank=0, state=ContainerState.ENDED)
            )
            await wait_until_async(lambda: not made.fleet.wait_reason("there.1"))
            assert made.far.asked.count(("stop", "there.1")) == 1

    scenario(cluster, body)


def test_a_launch_that_was_cut_off_between_two_containers_is_completed(cluster: Database) -> None:
    async def body(made: Cluster) -> None:
        await made.submit("there", pool="far", slots=3)
        made.far.reports["there.1"] = ContainerReport(
            allocation_id="there.1", container_rank=0, state=ContainerState.RUNNING
        )
        await made.scheduler.schedule()
        await made.engines[1].launch_pending()
        assert made.far.asked.count(("launch", "there.1")) == 1
        await made.engines[1].launch_pending()
        assert made.far.asked.count(("launch", "there.1")) == 1

    scenario(cluster, body)


def test_a_run_that_its_engine_does_not_know_any_more_is_lost_once_it_falls_silent(
    cluster: Database,
) -> None:
    async def body(made: Cluster) -> None:
        await made.submit("there", pool="far")
        await made.scheduler.schedule()
        await made.engines[1].launch_pending()
        await made.engines[1]._enforce()
        made.clock.advance(31)
        for _ in range(3):
            # Nobody was heard of yet: it may be on its way.
            made.clock.advance(14)
            await made.engines[1]._enforce()
        (container,) = await made.database.read(lambda c: runs.containers_of(c, "there.1"))
        assert not container.lost
        await made.database.write(lambda c: runs.update_container(c, "there.1", 0, pid=4711))
        await made.engines[1]._enforce()
        (container,) = await made.database.read(lambda c: runs.containers_of(c, "there.1"))
        assert container.lost

    scenario(cluster, body)


def test_runs_that_outlast_their_grace_are_ended_at_the_same_time(cluster: Database) -> None:
    async def body(made: Cluster) -> None:
        for name in ("a", "b"):
            await made.submit(name, pool="far")
        await made.scheduler.schedule()
        await made.engines[1].launch_pending()
        asked, both = set[str](), asyncio.Event()

        async def kill(allocation_id: str) -> None:
            # As Pods' keepers: the end takes its time. Here it waits for the other.
            asked.add(allocation_id)
            if len(asked) == 2:
                both.set()
            await both.wait()
            if allocation_id == "a.1":
                raise UnavailableError("nobody answers at far:1")

        made.far.kill = kill  # type: ignore[method-assign]
        late = {"kill": True, "signal_deadline": made.clock.time()}
        await made.database.write(lambda c: c.execute(sa.update(schema.runs).values(**late)))
        made.clock.advance(16)
        with pytest.raises(UnavailableError):
            await made.engines[1]._enforce()
        assert asked == {"a.1", "b.1"}

    scenario(cluster, body)


def test_an_engine_is_given_no_more_than_its_pool_says(cluster: Database) -> None:
    async def body(made: Cluster) -> None:
        for name in ("a", "b", "c"):
            await made.submit(name, pool="far")
        await made.scheduler.schedule()
        live = await made.database.read(runs.unfinalized)
        assert [run.allocation_id for run in live] == ["a.1", "b.1"]
        assert "it is given 2 at a time" in made.reasons.explain(await made.trial("c"))

    scenario(cluster, body)


def test_experiments_of_a_pool_that_is_gone_say_so(cluster: Database) -> None:
    async def body(made: Cluster) -> None:
        await made.submit("old", pool="gone")
        await made.submit("here", pool="")
        await made.scheduler.schedule()
        assert "no resource pool 'gone' any more" in made.reasons.explain(await made.trial("old"))
        assert (await made.trial("here")).state.value == "STARTING"

    scenario(cluster, body)


def test_the_quota_of_a_workspace_counts_the_slots_of_all_pools(cluster: Database) -> None:
    async def body(made: Cluster) -> None:
        await made.submit("here", pool="", slots=2)
        await made.submit("there", pool="far", slots=2)
        await made.database.write(lambda c: c.exec_driver_sql("UPDATE workspaces SET slots = 3"))
        await made.scheduler.schedule()
        assert [run.allocation_id for run in await made.database.read(runs.unfinalized)] == ["here.1"]
        assert "hold 2 of at most 3 slots" in made.reasons.explain(await made.trial("there"))

    scenario(cluster, body)


def test_the_scheduler_hears_of_new_capacity(cluster: Database) -> None:
    async def body(made: Cluster) -> None:
        async with made.running():
            with made.core.notifier.subscribe("schedule") as changes:
                await made.near.events.put(CapacityChange(pools=("default",)))
                assert await changes.wait(30)

    scenario(cluster, body)


def test_an_end_that_the_engine_explains_is_the_failure_of_the_run(cluster: Database) -> None:
    async def body(made: Cluster) -> None:
        await made.submit("there", pool="far")
        async with made.running():
            await made.scheduler.schedule()
            await wait_until_async(lambda: ("launch", "there.1") in made.far.asked)
            record = ExitRecord(exit_code=125, failure="image nowhere:1 cannot be pulled: no such host")
            await made.far.events.put(
                ContainerReport(
                    allocation_id="there.1", container_rank=0, state=ContainerState.ENDED, exit=record
                )
            )

            async def failure() -> str:
                (container,) = await made.database.read(lambda c: runs.containers_of(c, "there.1"))
                return container.failure

            await until(failure, "the failure")
            assert "cannot be pulled" in await failure()

    scenario(cluster, body)
