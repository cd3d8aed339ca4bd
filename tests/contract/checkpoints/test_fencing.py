from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.services.checkpoints import (
    CONTENT,
    SERVICE,
    TRIAL,
    RegistryHarness,
    new_id,
    registry_harness,
    token,
)

from resolute.errors import RunSupersededError
from resolute_checkpoints.domain.checkpoint import State
from resolute_checkpoints.store import records


def test_a_fence_supersedes_earlier_runs(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            begun = await w.begin(run=1)
            w.write(begun, CONTENT)
            assert await w.registry.fence(TRIAL, min_run=2) is None
            with pytest.raises(RunSupersededError, match=f"run 1 of trial {TRIAL} is over"):
                await w.commit(begun, run=1, principal=token(run=1))
            with pytest.raises(RunSupersededError):
                await w.begin(run=1)
            assert await w.listed() == []
            # A superseded run may abort: that only removes files.
            await w.registry.abort(begun, run=1, principal=token(run=1))
            assert not w.place(begun).exists()
            await w.store(run=2)

    asyncio.run(scenario())


def test_a_superseded_commit_hears_of_it_even_when_its_files_are_gone(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            begun = await w.begin(run=1)
            await w.registry.fence(TRIAL, min_run=2)
            with pytest.raises(RunSupersededError):
                await w.commit(begun, run=1)

    asyncio.run(scenario())


def test_a_commit_from_before_the_fence_may_be_repeated(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            committed = await w.store(run=1)
            latest = await w.registry.fence(TRIAL, min_run=2)
            assert latest is not None
            assert latest.checkpoint_id == committed
            assert (await w.commit(committed, run=1, principal=token(run=1))).state is State.COMPLETED

    asyncio.run(scenario())


def test_a_trial_goes_back_behind_what_superseded_runs_wrote(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            committed = {steps: await w.store(run=1, steps=steps) for steps in (100, 200, 300)}
            for _ in range(2):
                latest = await w.registry.fence(TRIAL, min_run=2, most_steps=250)
                assert latest is not None
                assert latest.checkpoint_id == committed[200]
            later = await w.store(run=2, steps=300)
            # A later fence takes none of that back, and leaves what the next run wrote.
            latest = await w.registry.fence(TRIAL, min_run=3)
            assert latest is not None
            assert latest.checkpoint_id == later
            assert sorted(await w.listed()) == sorted([*committed.values(), later])
            latest = await w.registry.fence(TRIAL, min_run=4, most_steps=50)
            assert latest is None

    asyncio.run(scenario())


def test_a_fence_never_falls(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            for min_run in (3, 1, 2):
                await w.registry.fence(TRIAL, min_run=min_run)
                with pytest.raises(RunSupersededError, match="below 3"):
                    await w.begin(run=2)
            await w.begin(run=3)

    asyncio.run(scenario())


def test_a_fence_of_one_trial_leaves_others_alone(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            await w.registry.fence(new_id(), min_run=9)
            await w.store(run=1)

    asyncio.run(scenario())


def test_the_latest_checkpoint_has_the_most_steps_then_the_latest_commit(url: str, root: Path) -> None:
    async def latest(w: RegistryHarness) -> str | None:
        found = await w.database.read(lambda connection: records.latest(connection, TRIAL))
        return None if found is None else found.checkpoint_id

    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            assert await latest(w) is None
            far = await w.store(steps=20)
            w.clock.advance(1)
            await w.store(steps=10, run=2)
            assert await latest(w) == far
            w.clock.advance(1)
            again = await w.store(steps=20, run=2)
            assert await latest(w) == again
            await w.store(steps=99, trial_id=new_id())
            await w.begin()
            assert await latest(w) == again
            # What has lost files cannot be resumed from.
            await w.deletions.delete([again], ["model.pt"], principal=SERVICE)
            assert await latest(w) == far
            await w.deletions.delete([far], [], principal=SERVICE)
            assert await latest(w) != far

    asyncio.run(scenario())


def test_no_commit_of_a_fenced_run_comes_after_the_response(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w, registry_harness(url, root) as replica:
            ids = [await w.begin(run=1) for _ in range(24)]
            for checkpoint_id in ids:
                w.write(checkpoint_id, CONTENT)

            async def commit(index: int) -> int | None:
                side = (w, replica)[index % 2]
                try:
                    await side.commit(ids[index], steps=index, run=1)
                except RunSupersededError:
                    return None
                return index

            commits = [asyncio.ensure_future(commit(index)) for index in range(12)]
            fenced = asyncio.ensure_future(replica.registry.fence(TRIAL, min_run=2))
            commits += [asyncio.ensure_future(commit(index)) for index in range(12, 24)]
            done = [step for step in await asyncio.gather(*commits) if step is not None]
            latest = await fenced
            assert (latest.steps_completed if latest else None) == max(done, default=None)
            assert len(await w.listed()) == len(done)

    asyncio.run(scenario())
