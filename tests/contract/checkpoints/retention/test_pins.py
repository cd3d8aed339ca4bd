"""Pinned checkpoints stay, anyone who wants them gone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.services.checkpoints import EXPERIMENT, SERVICE, RegistryHarness, new_id, registry_harness
from support.services.retention import expire

from resolute.errors import FailedPreconditionError, NotFoundError
from resolute_checkpoints.domain.checkpoint import State
from resolute_checkpoints.retention.enforcement import RetentionRequest
from resolute_checkpoints.retention.policy import RetentionPolicy


async def expire_everything(w: RegistryHarness) -> None:
    wish = RetentionRequest(
        experiment_id=EXPERIMENT,
        policy=RetentionPolicy(0, 0, 0),
        smaller_is_better=True,
        validations={},
    )
    await expire(w, wish)
    await w.collector.collect()


def test_a_pin_holds_against_people_policies_and_the_end_of_the_experiment(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            pinned, other = await w.store(), await w.store(steps=2)
            await w.deletions.pin([pinned], pinned=True)
            assert (await w.registry.get(pinned, principal=SERVICE)).pinned
            with pytest.raises(FailedPreconditionError, match="is pinned; unpin it"):
                await w.deletions.delete([other, pinned], [], principal=SERVICE)
            with pytest.raises(FailedPreconditionError, match="is pinned"):
                await w.deletions.delete([pinned], ["*.pt"], principal=SERVICE)
            assert await w.state(other) is State.COMPLETED
            await expire_everything(w)
            assert (await w.state(pinned), await w.state(other)) == (State.COMPLETED, State.DELETED)
            await w.deletions.delete_experiment(EXPERIMENT)
            await w.collector.collect()
            assert (w.place(pinned) / "model.pt").read_bytes() == b"weights"
            assert await w.listed(experiment_id=EXPERIMENT) == [pinned]
            await w.deletions.pin([pinned], pinned=False)
            await w.deletions.delete([pinned], [], principal=SERVICE)
            assert not w.place(pinned).exists()

    asyncio.run(scenario())


def test_what_is_not_there_cannot_be_pinned(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            gone, kept, begun = await w.store(), await w.store(), await w.begin()
            await w.deletions.delete([gone], [], principal=SERVICE)
            for wrong in (gone, begun, new_id()):
                with pytest.raises(NotFoundError):
                    await w.deletions.pin([kept, wrong], pinned=True)
            assert not (await w.registry.get(kept, principal=SERVICE)).pinned

    asyncio.run(scenario())
