from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
import sqlalchemy as sa
from support.services.checkpoints import (
    CONTENT,
    EXPERIMENT,
    SERVICE,
    TRIAL,
    RegistryHarness,
    new_id,
    registry_harness,
    token,
)

from resolute.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    IllegalTransitionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    RunSupersededError,
    UnavailableError,
)
from resolute_checkpoints.domain.checkpoint import DirectoryStorage, Owner, State
from resolute_checkpoints.registry.checkpoints import Begin
from resolute_checkpoints.store.schema import audit
from resolute_serving.context import Role, User


def test_a_checkpoint_is_visible_only_once_it_is_committed(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            checkpoint_id = await w.begin()
            files = w.write(checkpoint_id, CONTENT)
            assert await w.listed() == []
            with pytest.raises(NotFoundError, match=f"checkpoint {checkpoint_id} does not exist"):
                await w.registry.get(checkpoint_id, principal=User("ada", Role.ADMIN))
            writer = await w.registry.get(checkpoint_id, principal=token())
            assert writer.state is State.UPLOADING

            w.clock.advance(5)
            committed = await w.commit(checkpoint_id, steps=7, metadata={"note": "x"})
            assert committed.state is State.COMPLETED
            assert committed.steps_completed == 7
            assert sorted(committed.files, key=str) == sorted(files, key=str)
            assert committed.total_size == 14
            assert committed.metadata == {"steps_completed": 7, "note": "x"}
            assert committed.commit_time == committed.create_time + 5
            assert committed.owner == Owner(
                trial_id=TRIAL, experiment_id=EXPERIMENT, run=1, workspace="vision"
            )
            assert await w.registry.get(checkpoint_id, principal=User("ada", Role.VIEWER)) == committed
            assert await w.listed() == [checkpoint_id]
            assert await w.listed(experiment_id=EXPERIMENT) == [checkpoint_id]

    asyncio.run(scenario())


def test_begin_and_commit_may_be_repeated(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            checkpoint_id = await w.begin()
            assert await w.begin(checkpoint_id) == checkpoint_id
            w.write(checkpoint_id, CONTENT)
            first = await w.commit(checkpoint_id)
            w.clock.advance(60)
            # The retry of a commit whose answer was lost finds it done, even without looking at the files.
            shutil.rmtree(w.place(checkpoint_id))
            assert await w.commit(checkpoint_id) == first
            assert await w.begin(checkpoint_id) == checkpoint_id
            with pytest.raises(AlreadyExistsError, match="with other files or metadata"):
                await w.commit(checkpoint_id, steps=2)
            with pytest.raises(AlreadyExistsError, match="with other files or metadata"):
                await w.commit(checkpoint_id, {"model.pt": b"weights"})

    asyncio.run(scenario())


def test_a_repeated_commit_is_recognized_after_its_metadata_were_changed(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            checkpoint_id = await w.store()
            await w.registry.update_metadata(checkpoint_id, {"note": "x"}, principal=SERVICE)
            assert (await w.commit(checkpoint_id)).metadata == {"steps_completed": 1, "note": "x"}

    asyncio.run(scenario())


def test_of_many_equal_commits_at_once_every_one_succeeds(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w, registry_harness(url, root) as replica:
            checkpoint_id = await w.begin()
            w.write(checkpoint_id, CONTENT)
            commits = [side.commit(checkpoint_id) for side in (w, replica) for _ in range(5)]
            results = await asyncio.gather(*commits)
            assert len({str(result) for result in results}) == 1
            assert all(result == results[0] for result in results)

    asyncio.run(scenario())


def test_many_equal_begins_at_once_begin_one(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w, registry_harness(url, root) as replica:
            checkpoint_id = new_id()
            begins = [side.begin(checkpoint_id) for side in (w, replica) for _ in range(5)]
            assert set(await asyncio.gather(*begins)) == {checkpoint_id}

    asyncio.run(scenario())


@pytest.mark.parametrize("change", ["trial", "run", "experiment", "storage", "workspace"])
def test_an_identifier_that_is_taken_is_refused(url: str, root: Path, change: str) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            checkpoint_id = await w.begin()
            begin = Begin(
                checkpoint_id=checkpoint_id,
                owner=Owner(
                    trial_id=new_id() if change == "trial" else TRIAL,
                    run=2 if change == "run" else 1,
                    experiment_id=new_id() if change == "experiment" else EXPERIMENT,
                    workspace="other" if change == "workspace" else "vision",
                ),
                storage=DirectoryStorage("/elsewhere" if change == "storage" else str(root)),
                recorded=True,
            )
            with pytest.raises(AlreadyExistsError, match="choose another identifier"):
                await w.registry.begin(begin)

    asyncio.run(scenario())


def test_a_commit_without_its_files_is_refused_and_succeeds_once_they_are_there(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            checkpoint_id = await w.begin()
            with pytest.raises(FailedPreconditionError, match=r"'model\.pt' is not there"):
                await w.commit(checkpoint_id)
            w.write(checkpoint_id, {**CONTENT, "model.pt": b"half"})
            with pytest.raises(FailedPreconditionError, match=r"'model\.pt' has 4 bytes, not 7"):
                await w.commit(checkpoint_id)
            assert await w.listed() == []
            w.write(checkpoint_id, CONTENT)
            await w.commit(checkpoint_id)
            assert await w.listed() == [checkpoint_id]

    asyncio.run(scenario())


def test_only_some_of_many_missing_files_are_named(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            checkpoint_id = await w.begin()
            with pytest.raises(FailedPreconditionError, match="and 90 more"):
                await w.commit(checkpoint_id, {f"{n:03}": b"" for n in range(100)})

    asyncio.run(scenario())


def test_a_store_that_is_away_makes_commits_unavailable(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            checkpoint_id = await w.begin()
            w.write(checkpoint_id, CONTENT)
            away = root.with_name("away")
            root.rename(away)
            with pytest.raises(UnavailableError, match="mount it"):
                await w.commit(checkpoint_id)
            away.rename(root)
            await w.commit(checkpoint_id)

    asyncio.run(scenario())


def test_a_checkpoint_that_was_given_up_stays_so(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            checkpoint_id = await w.begin()
            w.write(checkpoint_id, CONTENT)
            for _ in range(2):
                await w.registry.abort(checkpoint_id, run=1, principal=token())
                assert not w.place(checkpoint_id).exists()
            w.write(checkpoint_id, CONTENT)
            with pytest.raises(IllegalTransitionError, match="is aborted and cannot become completed"):
                await w.commit(checkpoint_id)
            with pytest.raises(IllegalTransitionError, match="new identifier"):
                await w.begin(checkpoint_id)
            # What a writer put there after all goes when it hears of the refusal.
            await w.registry.abort(checkpoint_id, run=1, principal=token())
            assert not w.place(checkpoint_id).exists()

    asyncio.run(scenario())


def test_a_committed_checkpoint_cannot_be_given_up(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            checkpoint_id = await w.store()
            with pytest.raises(IllegalTransitionError, match="delete it instead"):
                await w.registry.abort(checkpoint_id, run=1, principal=SERVICE)
            assert w.place(checkpoint_id).exists()

    asyncio.run(scenario())


def test_only_the_run_that_began_a_checkpoint_commits_it_or_gives_it_up(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            checkpoint_id = await w.begin(run=2)
            w.write(checkpoint_id, CONTENT)
            for stranger in (token(trial_id=new_id(), run=2), token(run=1)):
                with pytest.raises(PermissionDeniedError, match="does not reach"):
                    await w.commit(checkpoint_id, run=2, principal=stranger)
                with pytest.raises(PermissionDeniedError, match="does not reach"):
                    await w.registry.abort(checkpoint_id, run=2, principal=stranger)
            with pytest.raises(InvalidArgumentError, match="was begun by run 2, the request names run 3"):
                await w.commit(checkpoint_id, run=3, principal=token(run=3))
            await w.commit(checkpoint_id, run=2, principal=token(run=2))

    asyncio.run(scenario())


def test_a_checkpoint_of_no_trial_needs_no_run(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            checkpoint_id = await w.begin(trial_id="", experiment_id="", run=0)
            w.write(checkpoint_id, CONTENT)
            assert (await w.commit(checkpoint_id, run=0)).state is State.COMPLETED

    asyncio.run(scenario())


def test_an_empty_checkpoint_of_names_in_any_script_is_kept_exactly(url: str, root: Path) -> None:
    content = {"模型/权重": b"", "a\nb": b"1", "e\u0301": b"22", "/".join(["字" * 80] * 12): b"333"}

    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            checkpoint_id = await w.store(content, metadata={"ключ\0": ["значение\0", 1, 1.0, None]})
            found = await w.registry.get(checkpoint_id, principal=SERVICE)
            assert {file.path: file.size for file in found.files} == {k: len(v) for k, v in content.items()}
            assert repr(found.metadata["ключ\0"]) == repr(["значение\0", 1, 1.0, None])
            empty = await w.store({})
            assert (await w.registry.get(empty, principal=SERVICE)).files == ()

    asyncio.run(scenario())


def test_everything_survives_a_restart(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            committed, begun = await w.store(), await w.begin()
            w.write(begun, CONTENT)
            await w.registry.fence(TRIAL, min_run=1)
        async with registry_harness(url, root) as w:
            assert await w.listed() == [committed]
            await w.commit(begun, steps=2)
            latest = await w.registry.fence(TRIAL, min_run=2)
            assert latest is not None
            assert latest.checkpoint_id == begun
            with pytest.raises(RunSupersededError):
                await w.begin(run=1)

    asyncio.run(scenario())


def test_every_change_leaves_an_audit_row(url: str, root: Path) -> None:
    async def scenario(w: RegistryHarness) -> None:
        checkpoint_id, given_up = await w.store(), await w.begin()
        await w.registry.abort(given_up, run=1, principal=SERVICE)
        await w.registry.update_metadata(checkpoint_id, {"a": 1}, principal=SERVICE)
        await w.registry.fence(TRIAL, min_run=2)
        await w.deletions.delete([checkpoint_id], [], principal=SERVICE)
        await w.deletions.delete_experiment(EXPERIMENT)
        query = sa.select(audit.c.action, audit.c.object).order_by(audit.c.entry)
        rows = await w.database.read(lambda connection: connection.execute(query).all())
        assert [tuple(row) for row in rows] == [
            ("checkpoint.begin", checkpoint_id),
            ("checkpoint.commit", checkpoint_id),
            ("checkpoint.begin", given_up),
            ("checkpoint.abort", given_up),
            ("checkpoint.update", checkpoint_id),
            ("trial.fence", TRIAL),
            ("checkpoint.delete", checkpoint_id),
            ("experiment.delete", EXPERIMENT),
        ]

    async def run() -> None:
        async with registry_harness(url, root) as w:
            await scenario(w)

    asyncio.run(run())
