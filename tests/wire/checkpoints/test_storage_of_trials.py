"""A trial's token reaches the storage of its experiment, what the operator lists, and nothing else."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from support.services.in_process import Running, serving

from resolute.api.checkpoints.v1 import checkpoint_pb2 as types
from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as messages
from resolute.api.checkpoints.v1 import storage_pb2
from resolute.api.checkpoints.v1.checkpoints_service_pb2_grpc import CheckpointsServiceStub
from resolute.contracts.files.storage_names import storage_name
from resolute.contracts.values import to_value
from resolute.errors import AlreadyExistsError, PermissionDeniedError
from resolute_checkpoints.blueprint import BLUEPRINT
from resolute_serving.context import Role, TrialRun

if TYPE_CHECKING:
    from resolute.api.checkpoints.v1.checkpoints_service_pb2_grpc import CheckpointsServiceAsyncStub


def directory(path: Path) -> storage_pb2.Storage:
    return storage_pb2.Storage(directory=storage_pb2.Storage.Directory(path=str(path)))


def bucket(prefix: str) -> storage_pb2.Storage:
    provider = storage_pb2.Storage.PROVIDER_S3
    return storage_pb2.Storage(
        bucket=storage_pb2.Storage.Bucket(bucket="weights", prefix=prefix, provider=provider)
    )


@dataclass
class Trial:
    """One trial, whose experiment's config names a storage."""

    stub: CheckpointsServiceAsyncStub
    trial_id: str
    experiment_id: str

    async def begin(self, storage: storage_pb2.Storage, *, checkpoint_id: str = "") -> str:
        request = messages.BeginCheckpointRequest(
            checkpoint_id=checkpoint_id or str(uuid.uuid4()),
            trial_id=self.trial_id,
            run=1,
            experiment_id=self.experiment_id,
            storage=storage,
        )
        await self.stub.BeginCheckpoint(request)
        return request.checkpoint_id

    async def commit(self, checkpoint_id: str, path: Path, content: bytes) -> None:
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        await self.stub.CommitCheckpoint(
            messages.CommitCheckpointRequest(
                checkpoint_id=checkpoint_id,
                run=1,
                files=[types.File(path=path.name, size=len(content))],
                metadata=to_value({"steps_completed": 1}),
            )
        )


@asynccontextmanager
async def trial(running: Running, recorded: storage_pb2.Storage) -> AsyncIterator[Trial]:
    trial_id, experiment_id = str(uuid.uuid4()), str(uuid.uuid4())
    token = running.trial_token(
        TrialRun(trial_id, 1, experiment_id, "a", "vision", storage=storage_name(recorded))
    )
    channel = running.channel(token)
    try:
        stub = cast("CheckpointsServiceAsyncStub", CheckpointsServiceStub(channel))
        yield Trial(stub, trial_id, experiment_id)
    finally:
        await channel.close()


def test_a_trial_begins_checkpoints_in_its_own_storage_and_below_the_roots_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        root, mine = tmp_path / "root", tmp_path / "mine"
        async with (
            serving([BLUEPRINT], tmp_path, checkpoints_root=root) as running,
            trial(running, directory(mine)) as t,
        ):
            await t.begin(directory(mine))
            await t.begin(directory(root))
            await t.begin(directory(root / "team" / "a"))
            for elsewhere in (tmp_path, tmp_path / "others", mine / "below", root.parent / "root2"):
                with pytest.raises(
                    PermissionDeniedError, match=rf"below {root}, .*RESOLUTE_CHECKPOINTS_ROOTS"
                ):
                    await t.begin(directory(elsewhere))
            with pytest.raises(PermissionDeniedError, match="RESOLUTE_CHECKPOINTS_BUCKETS"):
                await t.begin(bucket("team"))

    asyncio.run(scenario())


def test_no_script_captures_files_that_others_have_stored(tmp_path: Path) -> None:
    async def scenario() -> None:
        root = tmp_path / "root"
        async with (
            serving([BLUEPRINT], tmp_path, checkpoints_root=root) as running,
            trial(running, directory(root)) as victim,
            trial(running, directory(root)) as thief,
        ):
            theirs = await victim.begin(directory(root))
            await victim.commit(theirs, root / theirs / "model.pt", b"weights")
            # What lies there and has no row: events, checkpoints of scripts off cluster, other clusters.
            foreign = str(uuid.uuid4())
            (root / foreign).mkdir()
            # A storage of somebody else, which is a directory with such a name.
            team = str(uuid.uuid4())
            await victim.commit(
                inner := await victim.begin(directory(root / team)), root / team / inner / "f", b"x"
            )
            (root / "link").symlink_to(root / theirs)
            cluster_id = str(uuid.uuid5(uuid.NAMESPACE_URL, "resolute:test"))
            for taken in (theirs, foreign, team, cluster_id):
                with pytest.raises(AlreadyExistsError, match="choose another"):
                    await thief.begin(directory(root), checkpoint_id=taken)
            for within in (root / theirs, root / theirs / "sub", root / cluster_id, root / "link"):
                with pytest.raises(PermissionDeniedError, match="within another checkpoint"):
                    await thief.begin(directory(within))
            assert (root / theirs / "model.pt").read_bytes() == b"weights"
            # Repeating one's own begin is no capture, also once its files are there.
            mine = await thief.begin(directory(root))
            (root / mine).mkdir()
            assert await thief.begin(directory(root), checkpoint_id=mine) == mine

    asyncio.run(scenario())


def test_only_storages_below_the_roots_are_examined(tmp_path: Path) -> None:
    async def scenario() -> None:
        root = tmp_path / "root"
        root.mkdir()
        async with serving([BLUEPRINT], tmp_path, checkpoints_root=root) as running:
            channel = running.channel(running.user_token(role=Role.ADMIN))
            stub = cast("CheckpointsServiceAsyncStub", CheckpointsServiceStub(channel))
            found = await stub.CheckStorage(messages.CheckStorageRequest(storage=directory(root)))
            assert all(step.passed for step in found.steps)
            for outside in (directory(tmp_path), bucket("")):
                with pytest.raises(PermissionDeniedError, match="let the operator add the place to RESOLUTE"):
                    await stub.CheckStorage(messages.CheckStorageRequest(storage=outside))
            await channel.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("storage", "name"),
    [
        (directory(Path("/data/a")), "/data/a"),
        (bucket(""), "s3://weights"),
        (bucket("team/a"), "s3://weights/team/a"),
        (
            storage_pb2.Storage(
                bucket=storage_pb2.Storage.Bucket(
                    bucket="c", endpoint_url="https://ada.net/", provider=storage_pb2.Storage.PROVIDER_AZURE
                )
            ),
            "azure+https://ada.net/c",
        ),
        (storage_pb2.Storage(), ""),
    ],
)
def test_storages_have_names_of_one_line(storage: storage_pb2.Storage, name: str) -> None:
    assert storage_name(storage) == name
