"""Retention in the service: what the policy does not keep is marked at once and removed, once."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import pytest
from support.services.checkpoints import EXPERIMENT, RegistryHarness, registry_harness

from resolute.errors import NotFoundError
from resolute_checkpoints.domain.checkpoint import State
from resolute_checkpoints.retention.enforcement import RetentionEnforcer, RetentionRequest, Validation
from resolute_checkpoints.retention.policy import RetentionPolicy

TRIALS = [str(uuid.UUID(int=number)) for number in (1, 2)]


def expiry(w: RegistryHarness) -> RetentionEnforcer:
    return RetentionEnforcer(database=w.database, clock=w.clock, wake=w.collector.wake)


async def documented(w: RegistryHarness) -> tuple[list[str], dict[tuple[str, int], Validation]]:
    """The checkpoints and values of the documentation's example, the first at index 1."""
    values = {3: 0.6, 4: 0.5, 5: 0.4, 7: 0.2, 8: 0.3}
    ids, validations = [""], {}
    for number in range(1, 11):
        trial = TRIALS[number > 5]
        ids.append(await w.store(trial_id=trial, steps=number))
        if number in values:
            validations[trial, number] = Validation(values[number], float(number))
    return ids, validations


def wish(
    validations: dict[tuple[str, int], Validation], policy: RetentionPolicy, *pinned: str
) -> RetentionRequest:
    return RetentionRequest(
        experiment_id=EXPERIMENT,
        policy=policy,
        smaller_is_better=True,
        validations=validations,
        pinned=frozenset(pinned),
    )


@pytest.mark.parametrize(
    ("policy", "kept"),
    [((0, 0, 0), []), ((2, 0, 0), [7, 8]), ((0, 1, 1), [5, 7, 10]), ((2, 1, 0), [5, 7, 8])],
)
def test_only_what_the_policy_keeps_stays(
    url: str, root: Path, policy: tuple[int, int, int], kept: list[int]
) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            ids, validations = await documented(w)
            wanted = wish(validations, RetentionPolicy(*policy))
            foreseen = await expiry(w).preview(wanted)
            assert len(await w.listed(experiment_id=EXPERIMENT)) == 10
            assert sorted(await expiry(w).apply(wanted)) == sorted(foreseen)
            assert sorted(await w.listed(experiment_id=EXPERIMENT)) == sorted(ids[n] for n in kept)
            assert await w.collector.collect() == 10 - len(kept)
            assert sorted(path.name for path in root.iterdir()) == sorted(ids[n] for n in kept)
            # Anyone who repeats it changes nothing.
            assert await expiry(w).apply(wanted) == ()
            gone = await w.listed(State.DELETED, experiment_id=EXPERIMENT)
            assert len(gone) == 10 - len(kept)

    asyncio.run(scenario())


def test_sources_of_warm_starts_and_uploads_under_way_stay(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            source = await w.store(steps=1)
            uploading = await w.begin()
            other = await w.store(steps=2)
            deleted = await expiry(w).apply(wish({}, RetentionPolicy(0, 0, 0), source, str(uuid.uuid4())))
            assert list(deleted) == [other]
            assert await w.state(source) is State.COMPLETED
            assert await w.state(uploading) is State.UPLOADING

    asyncio.run(scenario())


def test_files_that_cannot_be_removed_now_are_removed_later(url: str, root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            await w.store()
            root.rename(tmp_path / "unmounted")
            await expiry(w).apply(wish({}, RetentionPolicy(0, 0, 0)))
            await w.collector.collect()
            assert await w.listed(State.DELETING)
            (tmp_path / "unmounted").rename(root)
            w.clock.advance(3600)
            await w.collector.collect()
            assert list(root.iterdir()) == []
            assert await w.listed(State.DELETED)

    asyncio.run(scenario())


def test_a_deleted_experiment_takes_no_policy(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            await w.store()
            await w.deletions.delete_experiment(EXPERIMENT)
            with pytest.raises(NotFoundError):
                await expiry(w).apply(wish({}, RetentionPolicy(0, 0, 0)))

    asyncio.run(scenario())
