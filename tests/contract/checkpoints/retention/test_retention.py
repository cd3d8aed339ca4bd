"""Retention in the service: what the policy does not keep is marked at once and removed, once."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import uuid
from pathlib import Path

import pytest
from support.services.checkpoints import EXPERIMENT, SERVICE, TRIAL, RegistryHarness, registry_harness
from support.services.retention import expire, whole

from resolute.errors import NotFoundError
from resolute_checkpoints.domain.checkpoint import State
from resolute_checkpoints.retention.enforcement import RetentionEnforcer, RetentionRequest, Validation
from resolute_checkpoints.retention.policy import RetentionPolicy
from resolute_checkpoints.store import ranks

TRIALS = [str(uuid.UUID(int=number)) for number in (1, 2)]


def expiry(w: RegistryHarness) -> RetentionEnforcer:
    return RetentionEnforcer(database=w.database, clock=w.clock, wake=w.collector.passes.wake)


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
    validations: dict[tuple[str, int], Validation], policy: RetentionPolicy, *sources: str
) -> RetentionRequest:
    return RetentionRequest(
        experiment_id=EXPERIMENT,
        policy=policy,
        smaller_is_better=True,
        validations=validations,
        sources=frozenset(sources),
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
            foreseen = await expiry(w).preview(await whole(w.database, wanted))
            assert len(await w.listed(experiment_id=EXPERIMENT)) == 10
            assert sorted(await expire(w, wanted)) == sorted(foreseen)
            assert sorted(await w.listed(experiment_id=EXPERIMENT)) == sorted(ids[n] for n in kept)
            assert await w.collector.collect() == 10 - len(kept)
            assert sorted(path.name for path in root.iterdir()) == sorted(ids[n] for n in kept)
            # Anyone who repeats it changes nothing.
            assert await expire(w, wanted) == []
            gone = await w.listed(State.DELETED, experiment_id=EXPERIMENT)
            assert len(gone) == 10 - len(kept)

    asyncio.run(scenario())


def test_sources_of_warm_starts_and_uploads_under_way_stay(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            source = await w.store(steps=1)
            uploading = await w.begin()
            other = await w.store(steps=2)
            deleted = await expire(w, wish({}, RetentionPolicy(0, 0, 0), source, str(uuid.uuid4())))
            assert list(deleted) == [other]
            assert await w.state(source) is State.COMPLETED
            assert await w.state(uploading) is State.UPLOADING

    asyncio.run(scenario())


def test_what_is_superseded_after_its_trial_was_looked_at_stays_until_its_values_are_read(
    url: str, root: Path
) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            policy = RetentionPolicy(1, 1, 0, keep_restorable=True)
            first = await w.store(trial_id=TRIALS[0], steps=100)
            # It has no validation yet, and stays as the latest.
            assert await expire(w, wish({}, policy)) == []
            other = await w.store(trial_id=TRIALS[1], steps=100)
            look = wish({(TRIALS[1], 100): Validation(0.5, 2.0)}, policy)
            look = dataclasses.replace(look, ranked=frozenset({other}))
            # Meanwhile the first trial validates at 100 steps, and commits again.
            second = await w.store(trial_id=TRIALS[0], steps=200)
            foreseen = await expiry(w).preview(look)
            assert list(await expiry(w).apply(look, deletable={first, second, other})) == list(foreseen) == []
            assert await w.database.read(ranks.unranked_trials) == [(TRIALS[0], EXPERIMENT)]
            values = {(TRIALS[0], 100): Validation(0.1, 1.0), (TRIALS[0], 200): Validation(0.3, 3.0)}
            assert await expire(w, wish(values, policy)) == []
            third = await w.store(trial_id=TRIALS[0], steps=300)
            assert await expire(w, wish(values, policy)) == [second]
            assert set(await w.listed(experiment_id=EXPERIMENT)) == {first, third, other}

    asyncio.run(scenario())


def test_what_is_known_of_values_stays_where_a_request_gives_none(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            best = await w.store(steps=100)
            worse = await w.store(steps=200)
            values = {(TRIAL, 100): Validation(0.1, 1.0), (TRIAL, 200): Validation(0.5, 2.0)}
            assert await expire(w, wish(values, RetentionPolicy(0, 2, 2))) == []
            # As for an experiment that has ended: what is there is noted, and no value of it read.
            last = await w.store(steps=300)
            assert await expire(w, wish({}, RetentionPolicy(0, 0, 2**31 - 1))) == []
            assert await w.database.read(ranks.unranked_trials) == []
            found = await w.database.read(lambda c: ranks.candidates(c, EXPERIMENT, now=0.0))
            assert {c.checkpoint_id: c.metric for c in found} == {best: 0.1, worse: 0.5, last: None}
            assert await expire(w, wish({}, RetentionPolicy(0, 1, 1))) == [worse]
            assert set(await w.listed(experiment_id=EXPERIMENT)) == {best, last}
            # A value that is reported anew replaces the other, also by one that has no rank.
            changed = {(TRIAL, 100): Validation(math.nan, 3.0), (TRIAL, 300): Validation(0.9, 4.0)}
            assert await expire(w, wish(changed, RetentionPolicy(0, 1, 0))) == [best]

    asyncio.run(scenario())


def test_what_was_deleted_before_retention_looked_at_it_is_not_looked_at(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            checkpoint_id = await w.store(trial_id=TRIALS[0])
            assert await w.database.read(ranks.unranked_trials) == [(TRIALS[0], EXPERIMENT)]
            await w.deletions.delete([checkpoint_id], [], principal=SERVICE)
            assert await w.database.read(ranks.unranked_trials) == []
            await w.collector.collect()
            assert await w.state(checkpoint_id) is State.DELETED
            assert await w.database.read(ranks.unranked_trials) == []

    asyncio.run(scenario())


def test_files_that_cannot_be_removed_now_are_removed_later(url: str, root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            await w.store()
            root.rename(tmp_path / "unmounted")
            await expire(w, wish({}, RetentionPolicy(0, 0, 0)))
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
                await expire(w, wish({}, RetentionPolicy(0, 0, 0)))

    asyncio.run(scenario())
