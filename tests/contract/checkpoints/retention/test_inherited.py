"""Nothing removes files of checkpoints that a restored cluster has inherited until it takes them over."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.services.checkpoints import (
    CONTENT,
    EXPERIMENT,
    SERVICE,
    TRIAL,
    RegistryHarness,
    registry_harness,
    token,
)
from support.services.retention import expire

from resolute.errors import FailedPreconditionError
from resolute_checkpoints.domain.checkpoint import State
from resolute_checkpoints.retention.enforcement import RetentionRequest
from resolute_checkpoints.retention.policy import RetentionPolicy
from resolute_checkpoints.settings import CheckpointSettings
from resolute_checkpoints.store.files import inheritance


async def expire_everything(w: RegistryHarness) -> None:
    wish = RetentionRequest(
        experiment_id=EXPERIMENT, policy=RetentionPolicy(0, 0, 0), smaller_is_better=True, validations={}
    )
    await expire(w, wish)
    await w.collector.collect()


def test_policies_and_people_leave_inherited_files_until_they_are_taken_over(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            inherited = await w.store()
            assert await w.database.write(inheritance.inherit_all) == 1
            own = await w.store(steps=2)
            assert (await w.registry.get(inherited, principal=SERVICE)).inherited
            assert not (await w.registry.get(own, principal=SERVICE)).inherited
            await expire_everything(w)
            assert (await w.state(inherited), await w.state(own)) == (State.COMPLETED, State.DELETED)
            for globs in ([], ["*.pt"]):
                with pytest.raises(FailedPreconditionError, match=r"restored or copied.*take-over"):
                    await w.deletions.delete([inherited], globs, principal=SERVICE)
            with pytest.raises(FailedPreconditionError, match=r"1 checkpoints.*archive.*take-over"):
                await w.deletions.delete_experiment(EXPERIMENT)
            assert (w.place(inherited) / "model.pt").read_bytes() == b"weights"
            assert await w.database.write(inheritance.take_over) == 1
            await expire_everything(w)
            assert not w.place(inherited).exists()
            await w.deletions.delete_experiment(EXPERIMENT)

    asyncio.run(scenario())


def test_what_was_being_removed_when_the_backup_was_made_stays(url: str, root: Path) -> None:
    """The removal was the original's, and perhaps it was revoked there since."""

    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            expired, begun = await w.store(), await w.begin()
            w.write(begun, CONTENT)
            wish = RetentionRequest(
                experiment_id=EXPERIMENT,
                policy=RetentionPolicy(0, 0, 0),
                smaller_is_better=True,
                validations={},
            )
            await expire(w, wish)
            await w.database.write(inheritance.inherit_all)
            await w.registry.fence(TRIAL, min_run=2)
            w.clock.advance(CheckpointSettings().abandon_seconds + 1)
            assert await w.collector.collect() == 0
            assert (w.place(expired) / "model.pt").exists()
            assert (w.place(begun) / "model.pt").exists()
            await w.database.write(inheritance.take_over)
            assert await w.collector.collect() == 2
            assert not w.place(expired).exists()
            assert not w.place(begun).exists()

    asyncio.run(scenario())


def test_a_trial_that_tidies_up_goes_on_and_the_files_wait(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            inherited = await w.store()
            await w.database.write(inheritance.inherit_all)
            await w.registry.fence(TRIAL, min_run=2)
            await w.deletions.delete([inherited], [], principal=token(run=2))
            await w.collector.collect()
            assert await w.state(inherited) is State.DELETING
            assert (w.place(inherited) / "model.pt").exists()
            await w.database.write(inheritance.take_over)
            await w.collector.collect()
            assert not w.place(inherited).exists()

    asyncio.run(scenario())


def test_a_removal_is_not_put_off_by_a_clock_that_was_set_back(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            expired = await w.store()
            wish = RetentionRequest(
                experiment_id=EXPERIMENT,
                policy=RetentionPolicy(0, 0, 0),
                smaller_is_better=True,
                validations={},
            )
            await expire(w, wish)
            w.clock.advance(-86_400.0)
            assert await w.collector.collect() == 1
            assert not w.place(expired).exists()

    asyncio.run(scenario())
