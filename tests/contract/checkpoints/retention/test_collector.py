from __future__ import annotations

import asyncio
from pathlib import Path

from contract.experiments.accounts.test_statements import statements
from support.services.checkpoints import CONTENT, SERVICE, TRIAL, new_id, registry_harness

from resolute.errors import IllegalTransitionError
from resolute_checkpoints.domain.checkpoint import State
from resolute_checkpoints.settings import CheckpointSettings

AGE = CheckpointSettings().abandon_seconds + 1


def test_an_upload_is_given_up_once_its_run_is_over_and_it_is_old(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            old = await w.begin(run=1)
            w.write(old, CONTENT)
            w.clock.advance(AGE)
            # Uploads of a living run may take as long as they need.
            assert await w.collector.collect() == 0
            young = await w.begin(run=1)
            w.write(young, CONTENT)
            await w.registry.fence(TRIAL, min_run=2)
            living = await w.begin(run=2)
            assert await w.collector.collect() == 1
            assert await w.state(old) is State.ABORTED
            assert not w.place(old).exists()
            assert await w.state(young) is State.UPLOADING
            assert w.place(young).exists()
            w.clock.advance(AGE)
            assert await w.collector.collect() == 1
            assert not w.place(young).exists()
            assert await w.state(living) is State.UPLOADING

    asyncio.run(scenario())


def test_committed_checkpoints_of_dead_runs_are_never_collected(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            committed = await w.store(run=1)
            await w.registry.fence(TRIAL, min_run=2)
            w.clock.advance(100 * AGE)
            assert await w.collector.collect() == 0
            assert await w.state(committed) is State.COMPLETED
            assert (w.place(committed) / "model.pt").exists()

    asyncio.run(scenario())


def test_an_upload_of_no_trial_is_given_up_after_a_longer_time(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            begun = await w.begin(trial_id="", experiment_id="", run=0)
            w.clock.advance(AGE)
            assert await w.collector.collect() == 0
            w.clock.advance(CheckpointSettings().orphan_seconds)
            assert await w.collector.collect() == 1
            assert await w.state(begun) is State.ABORTED

    asyncio.run(scenario())


def test_a_commit_and_the_collector_at_once_leave_a_whole_checkpoint_or_none(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w, registry_harness(url, root, clock=w.clock) as replica:
            ids = [await w.begin(trial_id="", experiment_id="", run=0) for _ in range(12)]
            for checkpoint_id in ids:
                w.write(checkpoint_id, CONTENT)
            w.clock.advance(CheckpointSettings().orphan_seconds + 1)

            async def commit(checkpoint_id: str) -> bool:
                try:
                    await w.commit(checkpoint_id, run=0)
                except IllegalTransitionError:
                    return False
                return True

            outcomes = await asyncio.gather(*(commit(i) for i in ids[:6]), replica.collector.collect())
            outcomes += await asyncio.gather(*(commit(i) for i in ids[6:]))
            won = [done for done in outcomes if isinstance(done, bool)]
            for checkpoint_id, committed in zip(ids, won, strict=True):
                whole = {p.name for p in w.place(checkpoint_id).rglob("*.pt")} == {"model.pt", "optimizer.pt"}
                state = await w.state(checkpoint_id)
                assert (state, whole) == ((State.COMPLETED, True) if committed else (State.ABORTED, False))

    asyncio.run(scenario())


def test_two_collectors_at_once_do_each_removal_once(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w, registry_harness(url, root, clock=w.clock) as replica:
            ids = [await w.store({"a": b"1"}) for _ in range(20)]
            away = root.with_name("away")
            root.rename(away)
            await w.deletions.delete(ids, [], principal=SERVICE)
            away.rename(root)
            w.clock.advance(3600)
            counts = await asyncio.gather(w.collector.collect(), replica.collector.collect())
            assert sum(counts) == 20
            assert await w.listed(State.DELETED) == await replica.listed(State.DELETED)
            assert len(await w.listed(State.DELETED)) == 20

    asyncio.run(scenario())


def test_the_background_task_collects_without_being_asked_and_ends(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            begun = await w.begin(trial_id=new_id(), run=1)
            w.clock.advance(CheckpointSettings().orphan_seconds + AGE)
            orphan = await w.begin(trial_id="", experiment_id="", run=0)
            w.clock.advance(CheckpointSettings().orphan_seconds + AGE)
            w.collector.passes.start()
            deadline = asyncio.get_running_loop().time() + 5
            while await w.state(orphan) is not State.ABORTED:
                assert asyncio.get_running_loop().time() < deadline
                await asyncio.sleep(0.01)
            await w.collector.passes.stop()
            assert await w.state(begun) is State.UPLOADING
            assert not [task for task in asyncio.all_tasks() if task.get_name() == "checkpoints-collector"]

    asyncio.run(scenario())


def test_a_pass_writes_nothing_while_nothing_is_open(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            await w.store(run=1)
            with statements() as seen:
                for _ in range(3):
                    assert await w.collector.collect() == 0
            # On SQLite it knows that nothing was committed since; elsewhere others may have.
            assert len(seen) == (1 if url.startswith("sqlite") else 3)
            assert not [one for one in seen if not one.startswith("SELECT")]

    asyncio.run(scenario())
