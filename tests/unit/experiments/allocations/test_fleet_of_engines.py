"""Several engines in one cluster: each fails by itself, and runs belong to the engine of their pool."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from support.engines.scripted import SLOTS, Cluster, fresh_database, scenario
from support.engines.session import until
from support.waiting import wait_until_async

from resolute.contracts.run.exit_record import ExitRecord
from resolute.errors import FailedPreconditionError, UnavailableError
from resolute_engines.protocol import (
    CapacityChange,
    ContainerReport,
    ContainerState,
    EvictionNotice,
    Pool,
)
from resolute_experiments.allocations import holds
from resolute_experiments.allocations.releases import Releases
from resolute_experiments.retention.garbage_collection import trials_awaiting_reports
from resolute_experiments.scheduling.disabling import disable
from resolute_experiments.servicers.allocations import confirm_running
from resolute_experiments.states import RunOutcome
from resolute_experiments.store import runs, schema
from resolute_experiments.timing import Timing
from resolute_serving.database.engine import Database


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Database]:
    """Its database."""
    with fresh_database(tmp_path) as database:
        yield database


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
            experiment = await made.experiment("there")
            assert not await trials_awaiting_reports(
                experiment, unreported=made.fleet.unreported, database=made.database
            )

            # What it could not be told of yet may have reports too.
            made.far.away = True
            await made.fleet.release(there)
            assert await made.fleet.unreported(experiment) == ["there.1"]

    scenario(cluster, body)


def test_an_engine_that_nobody_needs_is_named_all_the_same_while_it_is_away(cluster: Database) -> None:
    async def body(made: Cluster) -> None:
        async with made.running():
            await made.fleet.recover()
            assert made.fleet.problems() == []
            made.far.away = True
            made.clock.advance(60)
            await wait_until_async(lambda: made.wakes(made.fleet.problems))
            assert "engine distant does not answer" in made.fleet.problems()[0]
            made.far.away = False
            made.clock.advance(10)
            await wait_until_async(lambda: made.wakes(lambda: not made.fleet.problems()))

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


def test_the_time_in_the_queue_of_an_engine_was_waited(cluster: Database) -> None:
    async def body(made: Cluster) -> None:
        async def times(name: str) -> runs.RunTimes:
            found = await made.database.read(lambda c: runs.times_of(c, [name]))
            return found[name]

        for name, pool in (("here", "default"), ("there", "far")):
            await made.submit(name, pool=pool)
        await made.scheduler.schedule()
        placed = made.clock.time()
        made.clock.advance(3600)
        assert await times("here") == runs.RunTimes(0.0, placed)
        assert await times("there") == runs.RunTimes(0.0, None)
        assert (await made.experiment("there")).started_at is None
        begun = Timing(now=made.clock.time(), preemption_timeout=60.0)
        await made.database.write(lambda c: confirm_running(c, "there.1", rank=0, pid=7, timing=begun))
        assert await times("there") == runs.RunTimes(0.0, begun.now)
        assert (await made.experiment("there")).started_at == begun.now
        # Another process of the container changes nothing of that.
        late = Timing(now=begun.now + 5, preemption_timeout=60.0)
        await made.database.write(lambda c: confirm_running(c, "there.1", rank=0, pid=8, timing=late))
        await made.database.write(lambda c: runs.update(c, "there.1", ended_at=begun.now + 60))
        assert await times("there") == runs.RunTimes(60.0, None)

    scenario(cluster, body)


def test_a_launch_that_was_cut_off_between_two_containers_is_completed(cluster: Database) -> None:
    async def body(made: Cluster) -> None:
        await made.submit("there", pool="far", slots=3)
        made.far.reports["there.1"] = ContainerReport(
            allocation_id="there.1", container_rank=0, state=ContainerState.RUNNING
        )
        await made.scheduler.schedule()
        await made.engines[1].launches.launch_pending()
        assert made.far.asked.count(("launch", "there.1")) == 1
        await made.engines[1].launches.launch_pending()
        assert made.far.asked.count(("launch", "there.1")) == 1

    scenario(cluster, body)


def test_a_run_that_its_engine_does_not_know_any_more_is_lost_once_it_falls_silent(
    cluster: Database,
) -> None:
    async def body(made: Cluster) -> None:
        await made.submit("there", pool="far")
        await made.scheduler.schedule()
        await made.engines[1].launches.launch_pending()
        await made.engines[1]._enforce()
        # For as long as a lease lasts it may be on its way.
        made.clock.advance(14)
        await made.engines[1]._enforce()
        (container,) = await made.database.read(lambda c: runs.containers_of(c, "there.1"))
        assert not container.lost
        for _ in range(3):
            made.clock.advance(14)
            await made.engines[1]._enforce()
        (container,) = await made.database.read(lambda c: runs.containers_of(c, "there.1"))
        assert container.lost

    scenario(cluster, body)


def test_runs_that_outlast_their_grace_are_ended_at_the_same_time(cluster: Database) -> None:
    async def body(made: Cluster) -> None:
        for name in ("a", "b"):
            await made.submit(name, pool="far")
        await made.scheduler.schedule()
        await made.engines[1].launches.launch_pending()
        asked, both = set[str](), asyncio.Event()

        async def kill(allocation_id: str) -> None:
            # As Pods' shims: the end takes its time. Here it waits for the other.
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


def test_trials_without_slots_are_bounded_where_slots_are_given_out_here(cluster: Database) -> None:
    async def body(made: Cluster) -> None:
        made.near.add_pool(Pool(name="boxes", slots=SLOTS, most_without_slots=2))
        for name in ("a", "b"):
            await made.submit(name, pool="boxes", slots=0)
        for name in ("a2", "a3"):
            await made.add_trial(name, experiment="a")
        await made.submit("beside", pool="boxes")
        await made.scheduler.schedule()
        launched = [f"{name}.1" for name in ("a", "b", "beside")]
        assert sorted(name for what, name in made.near.asked if what == "launch") == launched
        assert "2 of them run at a time" in made.reasons.last_reason("a2", "a")
        await made.database.write(lambda c: runs.update(c, "a.1", outcome=RunOutcome.COMPLETED.value))
        await made.scheduler.schedule()
        assert ("launch", "a2.1") in made.near.asked
        assert ("launch", "a3.1") not in made.near.asked

    scenario(cluster, body)


def test_an_urgent_trial_without_slots_goes_first_also_where_no_slot_is_free(cluster: Database) -> None:
    async def body(made: Cluster) -> None:
        made.near.add_pool(Pool(name="boxes", slots=SLOTS[:1], most_without_slots=2))
        await made.submit("holds", pool="boxes")
        await made.scheduler.schedule()
        for name in ("patient", "urgent"):
            await made.submit(name, pool="boxes", slots=0)
            await made.add_trial(f"{name}2", experiment=name)
        await made.database.write(
            lambda c: c.exec_driver_sql("UPDATE experiments SET priority = 1 WHERE id = 'urgent'")
        )
        await made.scheduler.schedule()
        launched = [name for what, name in made.near.asked if what == "launch"]
        assert launched == ["holds.1", "urgent.1", "urgent2.1"]

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


def test_slots_are_disabled_in_one_pool_alone(cluster: Database) -> None:
    async def body(made: Cluster) -> None:
        made.near.add_pool(Pool(name="boxes", slots=SLOTS))

        def out_of_use(connection: Connection) -> None:
            disable(connection, [0], pool="boxes", drain=False, timing=made.core.timing())

        await made.submit("boxed", pool="boxes")
        await made.submit("here", pool="")
        await made.scheduler.schedule()
        await made.database.write(out_of_use)
        signals = {run.allocation_id: run.preempt for run in await made.database.read(runs.unfinalized)}
        assert signals == {"boxed.1": True, "here.1": False}, "both hold slot 0, each of its pool"
        await made.submit("wide", pool="boxes", slots=2)
        await made.submit("next", pool="boxes")
        await made.submit("beside", pool="")
        await made.scheduler.schedule()
        held = {run.allocation_id: run.slot_ids for run in await made.database.read(runs.unfinalized)}
        assert held == {"boxed.1": (0,), "here.1": (0,), "beside.1": (1,)}
        assert "(1 more are disabled)" in made.reasons.explain(await made.trial("wide"))

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


def test_files_are_held_by_an_engine_that_was_away_when_the_run_was_settled(cluster: Database) -> None:
    async def body(made: Cluster) -> None:
        run = await failed(made)
        made.far.away = True
        await made.fleet.release(run)
        with pytest.raises(FailedPreconditionError, match="are not held"):
            await held_by(made, run).files(run)
        made.far.away = False
        async with made.running():
            await wait_until_async(
                lambda: made.wakes(lambda: ("list_files", run.allocation_id) in made.far.asked)
            )
            assert await held_by(made, run).read_file(run, "0/work/nan.pt", offset=0, size=4) == b"weig"
            assert ("release", run.allocation_id) not in made.far.asked
            made.clock.advance(61.0)
            await wait_until_async(
                lambda: made.wakes(lambda: ("release", run.allocation_id) in made.far.asked)
            )
        assert await holds_of(made, run) is None

    scenario(cluster, body)


def test_files_that_cannot_be_listed_are_not_held(cluster: Database) -> None:
    async def body(made: Cluster) -> None:
        run = await failed(made)
        made.far.failures["list_files", run.allocation_id] = FailedPreconditionError("the disk is full")
        await made.fleet.release(run)
        with pytest.raises(FailedPreconditionError, match="are not held"):
            await held_by(made, run).files(run)
        assert made.far.asked[-1] == ("release", run.allocation_id)
        assert await holds_of(made, run) is None

    scenario(cluster, body)


def held_by(made: Cluster, run: runs.Run) -> Releases:
    return made.fleet.pools.engine_of(run.resource_pool).releases


async def failed(made: Cluster) -> runs.Run:
    """A run of the distant engine whose files are to be held for a minute."""
    await made.submit("there", pool="far", on_failure={"hold": 60.0, "hold_size": 10})
    await made.scheduler.schedule()
    until = made.clock.time() + 60.0
    await made.database.write(lambda c: runs.update(c, "there.1", held_until=until))
    return await made.database.read(lambda c: runs.get(c, "there.1"))


async def holds_of(made: Cluster, run: runs.Run) -> object:
    """What is held of a run."""
    return await made.database.read(lambda c: holds.of_run(c, run.allocation_id))
