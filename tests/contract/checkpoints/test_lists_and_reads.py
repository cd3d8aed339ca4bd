from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

import pytest
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
from support.waiting import wait_until_async

from resolute.api.checkpoints.v1.checkpoints_service_pb2 import ListCheckpointsRequest
from resolute.errors import DataLossError, InvalidArgumentError, NotFoundError, PermissionDeniedError
from resolute_checkpoints.domain.checkpoint import READABLE, State
from resolute_checkpoints.registry.downloads import CHUNK
from resolute_checkpoints.store import records
from resolute_serving import pagination
from resolute_serving.context import Principal, Role, User

ADA = User("ada", Role.VIEWER)


async def pages(
    w: RegistryHarness, *, size: int, trial_id: str = TRIAL, order_by: str = ""
) -> list[list[str]]:
    """Every page of a list."""
    wanted, result = records.CheckpointFilter(states=READABLE, trial_ids=[trial_id]), []
    request = ListCheckpointsRequest(page_size=size, order_by=order_by)
    while True:
        found, request.page_token = await w.page(wanted, request)
        result.append([checkpoint.checkpoint_id for checkpoint in found])
        if not request.page_token:
            return result


async def read(
    w: RegistryHarness, checkpoint_id: str, path: str, *, offset: int = 0, principal: Principal = ADA
) -> bytes:
    """A file, through the service."""
    chunks = w.downloads.read(checkpoint_id, path, offset=offset, principal=principal)
    return b"".join([chunk async for chunk in chunks])


def test_pages_hold_every_checkpoint_once_newest_first(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            ids = []
            for number in range(7):
                ids.append(await w.store(steps=number))
                if number % 3 == 0:
                    w.clock.advance(1)
            listed = await pages(w, size=3)
            assert [len(page) for page in listed] == [3, 3, 1]
            flat = [checkpoint_id for page in listed for checkpoint_id in page]
            assert sorted(flat) == sorted(ids)
            assert flat[-1] == ids[0]
            assert [len(page) for page in await pages(w, size=7)] == [7]
            assert await pages(w, size=7, trial_id=new_id()) == [[]]

    asyncio.run(scenario())


def test_a_checkpoint_that_is_committed_between_two_pages_disturbs_neither(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            begun = await w.begin()
            w.write(begun, CONTENT)
            ids = []
            for _ in range(4):
                w.clock.advance(1)
                ids.append(await w.store())
            wanted = records.CheckpointFilter(states=READABLE, experiment_ids=[EXPERIMENT])
            request = ListCheckpointsRequest(page_size=2)
            first, request.page_token = await w.page(wanted, request)
            w.clock.advance(1)
            await w.commit(begun)
            second, following = await w.page(wanted, request)
            assert [c.checkpoint_id for c in (*first, *second)] == ids[::-1]
            assert not following

    asyncio.run(scenario())


def test_pages_of_large_manifests_stay_small(url: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pagination, "MAX_PAGE_BYTES", 1000)

    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            for _ in range(3):
                await w.store({f"{n:0100}": b"" for n in range(20)})
            for _ in range(6):
                await w.store({})
            listed = await pages(w, size=100)
            assert sum(map(len, listed)) == 9
            assert len(listed) >= 3

    asyncio.run(scenario())


def test_a_file_is_read_from_any_offset(url: str, root: Path) -> None:
    content = os.urandom(2 * CHUNK + 17)

    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            checkpoint_id = await w.store({"model": content, "empty": b""})
            assert await read(w, checkpoint_id, "model") == content
            for offset in (1, CHUNK, 2 * CHUNK + 16, len(content)):
                assert await read(w, checkpoint_id, "model", offset=offset) == content[offset:]
            assert await read(w, checkpoint_id, "empty") == b""
            for offset in (-1, len(content) + 1):
                with pytest.raises(InvalidArgumentError, match=f"has {len(content)} bytes"):
                    await read(w, checkpoint_id, "model", offset=offset)

    asyncio.run(scenario())


@pytest.mark.parametrize("path", ["../model.pt", "/etc/passwd", "d", "d/", "unlisted", "", "x" * 5000])
def test_only_files_of_the_manifest_are_read(url: str, root: Path, path: str) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            checkpoint_id = await w.begin()
            w.write(checkpoint_id, {**CONTENT, "unlisted": b"x"})
            await w.commit(checkpoint_id)
            with pytest.raises(NotFoundError, match="holds no file"):
                await read(w, checkpoint_id, path)

    asyncio.run(scenario())


def test_a_file_that_changed_behind_the_registry_is_a_loss_of_data(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            checkpoint_id = await w.store()
            file = w.place(checkpoint_id) / "model.pt"
            file.write_bytes(b"wei")
            with pytest.raises(DataLossError, match="ends after 3 bytes and 7 were committed"):
                await read(w, checkpoint_id, "model.pt")
            file.write_bytes(b"weights and more")
            with pytest.raises(DataLossError, match="more than the 7 bytes"):
                await read(w, checkpoint_id, "model.pt")
            file.unlink()
            with pytest.raises(DataLossError, match="is not there"):
                await read(w, checkpoint_id, "model.pt")

    asyncio.run(scenario())


def test_what_is_not_committed_or_is_deleted_cannot_be_read(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            begun, deleted, part = await w.begin(), await w.store(), await w.store()
            w.write(begun, CONTENT)
            await w.deletions.delete([deleted], [], principal=SERVICE)
            await w.deletions.delete([part], ["model.pt"], principal=SERVICE)
            for checkpoint_id in (begun, deleted, part):
                with pytest.raises(NotFoundError):
                    await read(w, checkpoint_id, "model.pt")
            assert await read(w, part, "d/optimizer.pt") == b"moments"

    asyncio.run(scenario())


def test_a_reader_that_leaves_early_leaves_no_open_file(url: str, root: Path) -> None:
    def open_files() -> int:
        names = []
        for link in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed since they were listed
                names.append(link.readlink().name)
        return names.count("model")

    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            checkpoint_id = await w.store({"model": os.urandom(3 * CHUNK)})
            chunks = w.downloads.read(checkpoint_id, "model", offset=0, principal=ADA)
            assert len(await anext(chunks)) == CHUNK
            assert open_files() == 1
            await chunks.aclose()
            await wait_until_async(lambda: open_files() == 0)

    asyncio.run(scenario())


def test_a_directory_gives_no_urls_to_download_from(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            checkpoint_id = await w.store()
            assert await w.downloads.download_urls(checkpoint_id, ["model.pt"], principal=ADA) == []
            with pytest.raises(NotFoundError):
                await w.downloads.download_urls(checkpoint_id, ["other"], principal=ADA)

    asyncio.run(scenario())


def test_trials_read_what_is_of_their_workspace(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            own = await w.store(workspace="vision")
            unscoped = await w.store(workspace="")
            neighbour = token(trial_id=new_id(), experiment_id=new_id(), workspace="vision")
            stranger = token(trial_id=new_id(), experiment_id=new_id(), workspace="speech")
            moved = token(workspace="speech")
            for principal in (token(), neighbour, moved):
                assert await read(w, own, "model.pt", principal=principal) == b"weights"
                await w.registry.get(own, principal=principal)
            with pytest.raises(PermissionDeniedError, match="does not reach"):
                await read(w, own, "model.pt", principal=stranger)
            with pytest.raises(PermissionDeniedError, match="does not reach"):
                await w.registry.get(own, principal=stranger)
            assert await read(w, unscoped, "model.pt", principal=stranger) == b"weights"

    asyncio.run(scenario())


def test_metadata_are_patched_within_the_experiment(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            checkpoint_id, begun = await w.store(metadata={"a": 1, "b": {"c": 2}}), await w.begin()
            patched = await w.registry.update_metadata(
                checkpoint_id, {"a": None, "b": "x", "d": [1.5]}, principal=token(run=1)
            )
            assert patched.metadata == {"steps_completed": 1, "b": "x", "d": [1.5]}
            assert (await w.registry.get(checkpoint_id, principal=ADA)) == patched
            with pytest.raises(PermissionDeniedError):
                await w.registry.update_metadata(checkpoint_id, {}, principal=token(experiment_id=new_id()))
            with pytest.raises(NotFoundError):
                await w.registry.update_metadata(begun, {"a": 1}, principal=ADA)
            await w.deletions.delete([checkpoint_id], [], principal=SERVICE)
            with pytest.raises(NotFoundError, match="is deleted"):
                await w.registry.update_metadata(checkpoint_id, {"a": 1}, principal=ADA)
            assert await w.state(checkpoint_id) is State.DELETED

    asyncio.run(scenario())


def test_patches_at_once_all_stay(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w, registry_harness(url, root) as replica:
            checkpoint_id = await w.store()
            await asyncio.gather(
                *(
                    side.registry.update_metadata(checkpoint_id, {f"{name}{n}": n}, principal=SERVICE)
                    for name, side in (("w", w), ("r", replica))
                    for n in range(10)
                )
            )
            found = await w.registry.get(checkpoint_id, principal=SERVICE)
            assert len(found.metadata) == 21

    asyncio.run(scenario())
