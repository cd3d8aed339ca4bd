"""What an engine does at each look: no run keeps another one from it, and none is asked after in vain."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import sqlalchemy as sa
from support.engines.scripted import Cluster, fresh_database, scenario

from resolute.errors import FailedPreconditionError, QuotaError
from resolute_engines.protocol import ContainerReport, ContainerState
from resolute_experiments.allocations.launching.failing import LONGEST_SECONDS
from resolute_experiments.store import runs, schema
from resolute_serving.database.engine import Database

UNREADABLE = FailedPreconditionError("its exit cannot be read")
FULL = QuotaError("Job violates accounting/QOS policy")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """The database of a cluster."""
    with fresh_database(tmp_path) as database:
        yield database


async def placed(made: Cluster, *names: str) -> None:
    """Places trials at the engine that has a queue of its own, which has not launched them yet."""
    for name in names:
        await made.submit(name, pool="far")
    await made.scheduler.schedule()


async def settle(made: Cluster, name: str) -> None:
    """Ends the first run of a trial."""
    of_run = schema.runs.c.allocation_id == f"{name}.1"
    update = sa.update(schema.runs).where(of_run).values(outcome="LOST")
    await made.database.write(lambda c: c.execute(update))


async def look_until_leases_run_out(made: Cluster) -> None:
    """Looks for a little longer than a lease lasts; what fails for a run is told at each look."""
    for _ in range(3):
        made.clock.advance(14)
        with suppress(FailedPreconditionError):
            await made.engines[1]._look()


def test_a_run_that_cannot_be_asked_after_keeps_no_other_one_from_anything(database: Database) -> None:
    async def body(made: Cluster) -> None:
        await placed(made, "bad", "gone")
        await made.engines[1]._look()
        made.far.failures["inspect", "bad.1"] = UNREADABLE
        await made.database.write(lambda c: runs.update_container(c, "gone.1", 0, pid=4711))
        await look_until_leases_run_out(made)
        assert ("inspect", "bad.1") in made.far.asked
        assert (await made.container("gone")).lost

        # The end of the other makes room for a third one.
        await settle(made, "gone")
        await placed(made, "next")
        with pytest.raises(FailedPreconditionError, match="cannot be read"):
            await made.engines[1]._look()
        assert ("launch", "next.1") in made.far.asked

    scenario(database, body)


@pytest.mark.parametrize("pid", [0, 4711], ids=["never heard of", "heard of"])
def test_a_run_that_began_at_an_engine_which_forgot_it_is_lost(database: Database, pid: int) -> None:
    async def body(made: Cluster) -> None:
        await placed(made, "gone")
        await made.engines[1]._look()
        await made.engines[1]._watch.take(
            ContainerReport(allocation_id="gone.1", container_rank=0, state=ContainerState.RUNNING)
        )
        await made.database.write(lambda c: runs.update_container(c, "gone.1", 0, pid=pid))
        await look_until_leases_run_out(made)
        assert (await made.container("gone")).lost

    scenario(database, body)


def test_a_run_that_cannot_be_asked_after_keeps_no_start_of_the_service_from_going_on(
    database: Database,
) -> None:
    async def body(made: Cluster) -> None:
        await placed(made, "settled")
        await settle(made, "settled")
        await placed(made, "bad", "good")
        made.far.failures["inspect", "bad.1"] = UNREADABLE
        made.far.left = ["good.1", "settled.1"]
        await made.engines[1].recover()
        assert ("launch", "good.1") in made.far.asked
        assert [what for what in made.far.asked if what[0] == "release"] == [("release", "settled.1")]
        made.far.failures.clear()
        await made.engines[1]._look()
        assert ("launch", "bad.1") in made.far.asked
        assert made.far.asked.count(("leftovers", "")) == 1

    scenario(database, body)


def test_a_silent_run_is_asked_after_once_for_each_lease_that_runs_out(database: Database) -> None:
    async def body(made: Cluster) -> None:
        await placed(made, "a")
        await made.engines[1]._look()
        made.far.asked.clear()
        for count in (1, 2):
            await look_until_leases_run_out(made)
            await made.engines[1]._look()
            assert made.far.asked.count(("inspect", "a.1")) == count

    scenario(database, body)


def test_what_waits_in_the_queue_of_an_engine_is_not_asked_after(database: Database) -> None:
    async def body(made: Cluster) -> None:
        await placed(made, "a")
        await made.engines[1]._look()
        await made.engines[1]._watch.take(says("a", ContainerState.QUEUED))
        made.far.asked.clear()
        for _ in range(3):
            await look_until_leases_run_out(made)
        assert ("inspect", "a.1") not in made.far.asked

        await made.engines[1]._watch.take(says("a", ContainerState.RUNNING))
        await look_until_leases_run_out(made)
        assert ("inspect", "a.1") in made.far.asked

    scenario(database, body)


def test_runs_that_their_pool_has_no_room_for_wait_and_one_of_them_asks_again(database: Database) -> None:
    async def body(made: Cluster) -> None:
        await placed(made, "a", "b")
        for name in ("a", "b"):
            made.far.failures["launch", f"{name}.1"] = FULL
        await made.engines[1]._look()
        for name in ("a", "b"):
            assert made.reasons.explain(await made.trial(name)) == "Job violates accounting/QOS policy"
            assert not (await made.container(name)).over
        made.far.asked.clear()
        await made.engines[1]._look()
        assert [what for what in made.far.asked if what[0] == "launch"] == [("launch", "a.1")]
        assert ("inspect", "b.1") not in made.far.asked

        made.far.failures.clear()
        await made.engines[1]._look()
        assert {("launch", "a.1"), ("launch", "b.1")} <= set(made.far.asked)
        assert made.fleet.wait_reason("a.1") == ""

    scenario(database, body)


@pytest.mark.parametrize("call", ["inspect", "kill"])
def test_a_launch_that_fails_unexpectedly_is_retried_for_a_bounded_time(
    database: Database, call: str
) -> None:
    async def body(made: Cluster) -> None:
        await placed(made, "bad", "good")
        # A launch that fails is followed by a kill.
        made.far.failures["launch", "bad.1"] = made.far.failures[call, "bad.1"] = ZeroDivisionError(
            "a defect"
        )
        with pytest.raises(ZeroDivisionError):
            await made.engines[1]._look()
        assert ("launch", "good.1") in made.far.asked
        reason = "its launch by engine distant fails and is tried again: ZeroDivisionError: a defect"
        assert made.reasons.explain(await made.trial("bad")) == reason

        made.clock.advance(LONGEST_SECONDS)
        with suppress(ZeroDivisionError):  # of the lease that ran out
            await made.engines[1]._look()
        container = await made.container("bad")
        assert (container.exited, container.lost) == (True, False)
        assert container.failure == (
            "the run could not be started: engine distant failed at it for 30 seconds: "
            "ZeroDivisionError: a defect"
        )
        assert not (await made.container("good")).over
        assert made.fleet.wait_reason("bad.1") == ""

    scenario(database, body)


def test_a_run_that_has_begun_is_not_ended_because_its_engine_cannot_be_asked(database: Database) -> None:
    async def body(made: Cluster) -> None:
        await placed(made, "a")
        made.far.failures["inspect", "a.1"] = ZeroDivisionError("a defect")
        await made.database.write(lambda c: runs.update_container(c, "a.1", 0, pid=4711))
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await made.engines[1]._look()
            made.clock.advance(LONGEST_SECONDS)
        assert not (await made.container("a")).over
        assert "a defect" in made.fleet.wait_reason("a.1")

    scenario(database, body)


def test_a_run_that_is_told_to_end_before_its_launch_ends_without_one(database: Database) -> None:
    async def body(made: Cluster) -> None:
        await placed(made, "a")
        made.far.failures["launch", "a.1"] = FULL
        await made.engines[1]._look()
        told = {"preempt": True, "signal_deadline": made.clock.time() + 60}
        await made.database.write(lambda c: c.execute(sa.update(schema.runs).values(**told)))
        made.far.asked.clear()
        await made.engines[1]._look()
        container = await made.container("a")
        assert (container.exited, container.exit_code, container.acknowledged) == (True, 0, True)
        assert ("launch", "a.1") not in made.far.asked
        assert ("kill", "a.1") in made.far.asked, "a submission of which the answer was lost may be there"

    scenario(database, body)


async def placed_in_two(made: Cluster, name: str) -> None:
    """Launches a trial in two containers, of which one runs and one waits; the trial counts as running."""
    await made.submit(name, pool="far", slots=4)
    await made.scheduler.schedule()
    await made.engines[1]._look()
    await made.engines[1]._watch.take(
        says(name, ContainerState.QUEUED, rank=1, reason="Unschedulable: 0/3 nodes")
    )
    await made.engines[1]._watch.take(says(name, ContainerState.RUNNING))
    running = sa.update(schema.trials).where(schema.trials.c.id == name).values(state="RUNNING")
    await made.database.write(lambda c: c.execute(running))


def test_a_run_waits_while_any_of_its_containers_does(database: Database) -> None:
    async def body(made: Cluster) -> None:
        await placed_in_two(made, "a")
        assert len(made.far.specs["a.1"].placements) == 2
        waits = "container 1 waits: Unschedulable: 0/3 nodes"
        assert made.reasons.explain(await made.trial("a")) == waits
        await made.engines[1]._watch.take(says("a", ContainerState.RUNNING, rank=1))
        assert made.reasons.explain(await made.trial("a")) == ""

    scenario(database, body)


def test_what_waits_of_a_run_is_taken_back_once_the_run_is_told_to_exit(database: Database) -> None:
    async def body(made: Cluster) -> None:
        await placed_in_two(made, "a")
        told = {"preempt": True, "signal_deadline": made.clock.time() + 3600}
        await made.database.write(lambda c: c.execute(sa.update(schema.runs).values(**told)))
        for _ in range(2):
            await made.engines[1]._look()
        assert made.far.asked.count(("stop", "a.1")) == 1

    scenario(database, body)


def test_a_run_of_which_a_part_runs_is_asked_after_when_it_falls_silent(database: Database) -> None:
    async def body(made: Cluster) -> None:
        await placed_in_two(made, "a")
        made.far.asked.clear()
        await look_until_leases_run_out(made)
        assert ("inspect", "a.1") in made.far.asked

    scenario(database, body)


def says(name: str, state: ContainerState, *, rank: int = 0, reason: str = "") -> ContainerReport:
    """What an engine says of a container of a trial's first run."""
    return ContainerReport(allocation_id=f"{name}.1", container_rank=rank, state=state, reason=reason)
