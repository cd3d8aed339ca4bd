from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa
from support.services.checkpoints import (
    CONTENT,
    EXPERIMENT,
    SERVICE,
    TRIAL,
    VISION,
    RegistryHarness,
    new_id,
    registry_harness,
    token,
)

from resolute.errors import (
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    RunSupersededError,
    UnavailableError,
)
from resolute_checkpoints.domain.checkpoint import State
from resolute_checkpoints.retention.remover import CLAIM_SECONDS
from resolute_checkpoints.store import rows as stored
from resolute_checkpoints.store import usage
from resolute_checkpoints.store.files import removals
from resolute_checkpoints.store.schema import checkpoints, files

MODEL = {"a.pt": b"1", "b.txt": b"22", "d/c.pt": b"333", "d/e/f.txt": b"4444"}


async def rows(w: RegistryHarness) -> tuple[int, int]:
    """How many rows of checkpoints and files there are."""

    def count(connection: sa.Connection) -> tuple[int, int]:
        counts = [
            connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for table in (checkpoints, files)
        ]
        return counts[0], counts[1]

    return await w.database.read(count)


def test_a_workspace_takes_what_its_readable_checkpoints_take(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            assert await w.storage_usage(VISION) == 0
            first = await w.store({"a": b"1" * 100, "b": b"2" * 20})
            await w.store({"a": b"1" * 3})
            await w.store({"a": b"1" * 1000}, workspace_id=VISION + 1)
            await w.begin()
            assert await w.storage_usage(VISION) == 123
            await w.deletions.delete([first], [], principal=SERVICE)
            assert await w.storage_usage(VISION) == 3

    asyncio.run(scenario())


def test_the_experiments_that_take_most_come_first(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            large, small = EXPERIMENT, new_id()
            await w.store({"a": b"1" * 3}, experiment_id=small)
            kept = await w.store({"a": b"1" * 100}, experiment_id=large)
            await w.store({"a": b"2" * 50}, experiment_id=large)
            await w.store({"a": b"1" * 1000}, workspace_id=VISION + 1)
            assert await list_usage(w) == [(large, 2, 150), (small, 1, 3)]
            await w.deletions.delete([kept], [], principal=SERVICE)
            assert await list_usage(w) == [(large, 1, 50), (small, 1, 3)]

    asyncio.run(scenario())


async def list_usage(w: RegistryHarness) -> list[tuple[str, int, int]]:
    found = await w.database.read(lambda connection: usage.of_experiments(connection, VISION))
    return [(one.experiment_id, one.checkpoint_count, one.checkpoint_bytes) for one in found]


def test_bytes_that_checkpoints_share_count_once_and_until_nobody_has_them(url: str, root: Path) -> None:
    def lies_in(connection: sa.Connection, borrower: str, home: str) -> None:
        connection.execute(
            sa.update(files)
            .where(files.c.checkpoint_id == borrower, files.c.path == "backbone")
            .values(home_id=home, home_path="backbone")
        )

    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            content = {"backbone": b"1" * 90, "head": b"2" * 10}
            home, *others = [await w.store(content) for _ in range(10)]
            for other in others:
                await w.database.write(partial(lies_in, borrower=other, home=home))
            assert await w.storage_usage(VISION) == 90 + 10 * 10
            await w.deletions.delete([home], [], principal=SERVICE)
            assert await w.storage_usage(VISION) == 90 + 9 * 10
            await w.deletions.delete(others, [], principal=SERVICE)
            assert await w.storage_usage(VISION) == 0

    asyncio.run(scenario())


def test_what_is_being_deleted_counts_until_it_is_gone(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            whole, part = await w.store(MODEL), await w.store(MODEL)
            away = root.rename(root.with_name("away"))
            await w.deletions.delete([whole], [], principal=SERVICE)
            await w.deletions.delete([part], ["*.pt"], principal=SERVICE)
            assert await w.state(whole) is State.DELETING
            assert await w.storage_usage(VISION) == 20
            away.rename(root)
            w.clock.advance(3600)
            await w.collector.collect()
            assert await w.storage_usage(VISION) == 9

    asyncio.run(scenario())


def test_a_deleted_checkpoint_loses_its_files_and_stays_in_the_books(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            gone, kept = await w.store(), await w.store()
            for _ in range(2):
                await w.deletions.delete([gone, gone], [], principal=SERVICE)
                assert not w.place(gone).exists()
                found = await w.registry.get(gone, principal=SERVICE)
                assert (found.state, found.files, found.total_size) == (State.DELETED, (), 0)
                assert found.steps_completed == 1
            assert await w.listed() == [kept]
            assert await w.listed(State.DELETED) == [gone]
            assert w.place(kept).exists()
            assert await rows(w) == (2, len(CONTENT))

    asyncio.run(scenario())


def test_files_that_match_are_deleted_and_the_others_stay(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            checkpoint_id = await w.store(MODEL)
            for _ in range(2):
                await w.deletions.delete([checkpoint_id], ["**/*.pt"], principal=SERVICE)
            found = await w.registry.get(checkpoint_id, principal=SERVICE)
            assert found.state is State.PARTIALLY_DELETED
            assert [file.path for file in found.files] == ["b.txt", "d/e/f.txt"]
            assert found.total_size == 6
            assert not (w.place(checkpoint_id) / "a.pt").exists()
            assert (w.place(checkpoint_id) / "b.txt").read_bytes() == b"22"
            assert await w.listed() == [checkpoint_id]
            assert await rows(w) == (1, 2)

            await w.deletions.delete([checkpoint_id], ["**"], principal=SERVICE)
            assert await w.state(checkpoint_id) is State.DELETED
            assert not w.place(checkpoint_id).exists()

    asyncio.run(scenario())


def test_patterns_that_match_nothing_change_nothing(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            checkpoint_id = await w.store(MODEL)
            await w.deletions.delete([checkpoint_id], ["*.onnx"], principal=SERVICE)
            assert await w.state(checkpoint_id) is State.COMPLETED
            with pytest.raises(InvalidArgumentError, match=r"globs\[0\]"):
                await w.deletions.delete([checkpoint_id], ["../*"], principal=SERVICE)

    asyncio.run(scenario())


def test_either_all_are_marked_or_none(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            first, begun = await w.store(), await w.begin()
            for unknown in (new_id(), begun):
                with pytest.raises(NotFoundError, match=unknown):
                    await w.deletions.delete([first, unknown], [], principal=SERVICE)
                assert await w.state(first) is State.COMPLETED
            assert w.place(first).exists()

    asyncio.run(scenario())


def test_trials_delete_only_within_their_experiment_and_while_they_have_authority(
    url: str, root: Path
) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            checkpoint_id, sibling = await w.store(), await w.store(trial_id=new_id())
            with pytest.raises(PermissionDeniedError, match="does not reach"):
                await w.deletions.delete([checkpoint_id], [], principal=token(experiment_id=new_id()))
            await w.deletions.delete([sibling], [], principal=token())
            await w.registry.fence(TRIAL, min_run=2)
            # A trial that was replaced must not delete what its successor starts from.
            with pytest.raises(RunSupersededError):
                await w.deletions.delete([checkpoint_id], [], principal=token())
            assert await w.listed() == [checkpoint_id]
            await w.deletions.delete([checkpoint_id], [], principal=token(run=2))
            assert await w.listed() == []

    asyncio.run(scenario())


def test_what_cannot_be_removed_now_is_removed_later(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            checkpoint_id = await w.store()
            away = root.with_name("away")
            root.rename(away)
            await w.deletions.delete([checkpoint_id], [], principal=SERVICE)
            assert await w.state(checkpoint_id) is State.DELETING
            assert await w.listed() == []
            assert await w.collector.collect() == 0
            w.clock.advance(10)
            assert await w.collector.collect() == 1
            # Each failure doubles the pause.
            away.rename(root)
            w.clock.advance(10)
            assert await w.collector.collect() == 0
            w.clock.advance(10)
            assert await w.collector.collect() == 1
            assert await w.state(checkpoint_id) is State.DELETED
            assert not w.place(checkpoint_id).exists()

    asyncio.run(scenario())


def test_a_removal_that_was_cut_short_is_finished_by_the_collector(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            whole, part = await w.store(MODEL), await w.store(MODEL)
            now = w.clock.time()

            def die_after_marking(connection: sa.Connection) -> None:
                removals.mark_for_removal(connection, whole, state=State.DELETING, now=now)
                found = stored.load(connection, [part])[part]
                removals.mark_files_for_removal(connection, found, ["a.pt", "d/c.pt"], now=now)
                removals.claim(connection, [whole, part], until=now + CLAIM_SECONDS)

            await w.database.write(die_after_marking)
            (w.place(part) / "a.pt").unlink()
        async with registry_harness(url, root, clock=w.clock) as w:
            assert await w.collector.collect() == 0
            w.clock.advance(CLAIM_SECONDS)
            assert await w.collector.collect() == 2
            assert await w.state(whole) is State.DELETED
            assert not w.place(whole).exists()
            assert await w.state(part) is State.PARTIALLY_DELETED
            assert sorted(p.name for p in w.place(part).rglob("*.*")) == ["b.txt", "f.txt"]
            assert await rows(w) == (2, 2)
            assert await w.collector.collect() == 0

    asyncio.run(scenario())


def test_a_slow_removal_does_not_undo_what_was_asked_meanwhile(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            checkpoint_id = await w.store(MODEL)
            now = w.clock.time()

            def mark(connection: sa.Connection) -> list[removals.Removal]:
                found = stored.load(connection, [checkpoint_id])[checkpoint_id]
                removals.mark_files_for_removal(connection, found, ["a.pt"], now=now)
                return removals.claim(connection, [checkpoint_id], until=now + CLAIM_SECONDS)

            slow = await w.database.write(mark)
            await w.deletions.delete([checkpoint_id], [], principal=SERVICE)
            assert await w.remover.execute(slow) == []
            assert await w.state(checkpoint_id) is State.DELETED
            assert await rows(w) == (1, 0)

    asyncio.run(scenario())


def test_an_experiment_is_removed_with_everything_and_leaves_a_tombstone(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            completed, begun, deleted, aborted = [
                await w.store(),
                await w.begin(),
                await w.store(),
                await w.begin(),
            ]
            w.write(begun, CONTENT)
            await w.deletions.delete([deleted], [], principal=SERVICE)
            await w.registry.abort(aborted, run=1, principal=SERVICE)
            other = await w.store(trial_id=new_id(), experiment_id=new_id())
            for _ in range(2):
                await w.deletions.delete_experiment(EXPERIMENT)
            assert sorted(path.name for path in root.iterdir()) == [other]
            assert await rows(w) == (1, len(CONTENT))
            for checkpoint_id in (completed, begun, deleted, aborted):
                with pytest.raises(NotFoundError):
                    await w.registry.get(checkpoint_id, principal=SERVICE)
            with pytest.raises(NotFoundError, match="was deleted; nothing can be stored for it"):
                await w.begin()
            with pytest.raises(NotFoundError):
                await w.commit(begun)

    asyncio.run(scenario())


def test_many_checkpoints_of_an_experiment_are_removed_in_one_call(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            await asyncio.gather(*(w.store({"a": b"1"}) for _ in range(120)))
            await w.deletions.delete_experiment(EXPERIMENT)
            assert await rows(w) == (0, 0)
            assert list(root.iterdir()) == []

    asyncio.run(scenario())


def test_an_experiment_whose_store_is_away_is_removed_once_it_is_back(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            await w.store()
            never_written = await w.begin()
            away = root.with_name("away")
            root.rename(away)
            with pytest.raises(
                UnavailableError, match=r"of 1 checkpoints could not be removed yet.* mount it"
            ):
                await w.deletions.delete_experiment(EXPERIMENT)
            away.rename(root)
            with pytest.raises(NotFoundError):
                await w.begin(never_written)
            await w.deletions.delete_experiment(EXPERIMENT)
            assert await rows(w) == (0, 0)
            assert list(root.iterdir()) == []

    asyncio.run(scenario())


def test_an_upload_that_was_never_written_needs_no_store_to_be_given_up(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            begun = await w.begin()
            root.rmdir()
            await w.registry.abort(begun, run=1, principal=SERVICE)
            await w.deletions.delete_experiment(EXPERIMENT)
            assert await rows(w) == (0, 0)

    asyncio.run(scenario())
