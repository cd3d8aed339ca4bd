"""Lists of checkpoints and of their files: pages, order and filters."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import pytest
from support.services.in_process import serving
from wire.checkpoints.callers import CONTENT, EXPERIMENT, TRIAL, client, trial

from resolute.api.checkpoints.v1 import checkpoint_pb2 as types
from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as messages
from resolute.errors import (
    InvalidArgumentError,
    PermissionDeniedError,
)
from resolute_checkpoints.blueprint import BLUEPRINT
from resolute_serving.context import Role


def test_pages_follow_each_other_by_token(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving([BLUEPRINT], tmp_path) as running:
            root = tmp_path / "store"
            async with client(running, trial(running), root) as t:
                ids = [await t.store(steps=step) for step in range(5)]
                found: list[str] = []
                request = messages.ListCheckpointsRequest(trial_ids=[TRIAL], page_size=2)
                while True:
                    page = await t.stub.ListCheckpoints(request)
                    found += [checkpoint.checkpoint_id for checkpoint in page.checkpoints]
                    if not page.next_page_token:
                        break
                    request.page_token = page.next_page_token
                assert found == ids[::-1]
                request.states.append(types.CHECKPOINT_STATE_DELETED)
                with pytest.raises(InvalidArgumentError, match="other filters"):
                    await t.stub.ListCheckpoints(request)

    asyncio.run(scenario())


def test_checkpoints_are_ordered_and_filtered_and_the_latest_is_read(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving([BLUEPRINT], tmp_path) as running:
            root = tmp_path / "store"
            async with (
                client(running, trial(running), root) as t,
                client(running, running.user_token(role=Role.EDITOR), root) as editor,
            ):
                far, near = await t.store(steps=20), await t.store(steps=10)

                async def listed(**fields: object) -> list[str]:
                    request = messages.ListCheckpointsRequest(
                        experiment_ids=[EXPERIMENT],
                        **fields,  # type: ignore[arg-type]
                    )
                    found = (await editor.stub.ListCheckpoints(request)).checkpoints
                    return [checkpoint.checkpoint_id for checkpoint in found]

                assert await listed(order_by="steps_completed") == [near, far]
                assert await listed(order_by="steps_completed desc") == [far, near]
                await editor.stub.PinCheckpoints(
                    messages.PinCheckpointsRequest(checkpoint_ids=[near], pinned=True)
                )
                assert await listed(pinned=True) == [near]
                assert await listed(pinned=False, trial_ids=[TRIAL]) == [far]
                latest = messages.GetLatestCheckpointRequest(trial_id=TRIAL)
                for caller in (t, editor):
                    found = await caller.stub.GetLatestCheckpoint(latest)
                    assert found.checkpoint.checkpoint_id == far
                other = messages.GetLatestCheckpointRequest(trial_id=str(uuid.uuid4()))
                assert not (await editor.stub.GetLatestCheckpoint(other)).HasField("checkpoint")
                with pytest.raises(PermissionDeniedError):
                    await t.stub.GetLatestCheckpoint(other)
                with pytest.raises(InvalidArgumentError, match="both empty"):
                    await editor.stub.ListCheckpoints(messages.ListCheckpointsRequest())

    asyncio.run(scenario())


def test_files_are_listed_by_prefix_and_size(tmp_path: Path) -> None:
    async def scenario() -> None:
        root = tmp_path / "store"
        async with serving([BLUEPRINT], tmp_path) as running, client(running, trial(running), root) as t:
            checkpoint_id = await t.store()

            async def listed(**fields: object) -> list[str]:
                request = messages.ListFilesRequest(
                    checkpoint_id=checkpoint_id,
                    **fields,  # type: ignore[arg-type]
                )
                return [file.path for file in (await t.stub.ListFiles(request)).files]

            paths = sorted([*CONTENT, "d/"])
            assert await listed() == paths
            assert await listed(path_prefix="d") == [path for path in paths if path.startswith("d")]
            assert await listed(path_prefix="D") == []
            assert (await listed(order_by="size desc"))[0] == "model.pt"

    asyncio.run(scenario())
