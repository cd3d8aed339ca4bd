"""Trials and people who call the checkpoints service."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from support.services.in_process import Running

from resolute.api.checkpoints.v1 import checkpoint_pb2 as types
from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as messages
from resolute.api.checkpoints.v1 import storage_pb2
from resolute.api.checkpoints.v1.checkpoints_service_pb2_grpc import CheckpointsServiceStub
from resolute.contracts.values import to_value
from resolute_serving.context import TrialRun

if TYPE_CHECKING:
    from resolute.api.checkpoints.v1.checkpoints_service_pb2_grpc import CheckpointsServiceAsyncStub

EXPERIMENT, TRIAL = str(uuid.uuid4()), str(uuid.uuid4())
CONTENT = {"model.pt": b"weights" * 300_000, "d/empty": b"", "模型": b"x"}


@dataclass
class Client:
    """One caller."""

    running: Running
    root: Path
    stub: CheckpointsServiceAsyncStub
    run: int = 1

    def begin_request(self, checkpoint_id: str) -> messages.BeginCheckpointRequest:
        return messages.BeginCheckpointRequest(
            checkpoint_id=checkpoint_id,
            trial_id=TRIAL,
            run=self.run,
            experiment_id=EXPERIMENT,
            storage=storage_pb2.Storage(directory=storage_pb2.Storage.Directory(path=str(self.root))),
        )

    def commit_request(self, checkpoint_id: str, *, steps: int = 1) -> messages.CommitCheckpointRequest:
        files = [
            types.File(path=path, size=len(data), digest=f"sha256:{hashlib.sha256(data).hexdigest()}")
            for path, data in CONTENT.items()
        ]
        return messages.CommitCheckpointRequest(
            checkpoint_id=checkpoint_id,
            run=self.run,
            files=[*files, types.File(path="d/")],
            metadata=to_value({"steps_completed": steps, "note": "first"}),
        )

    def write(self, checkpoint_id: str) -> None:
        for path, data in CONTENT.items():
            target = self.root / checkpoint_id / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)

    async def store(self, *, steps: int = 1) -> str:
        checkpoint_id = str(uuid.uuid4())
        await self.stub.BeginCheckpoint(self.begin_request(checkpoint_id))
        self.write(checkpoint_id)
        await self.stub.CommitCheckpoint(self.commit_request(checkpoint_id, steps=steps))
        return checkpoint_id

    async def read(self, checkpoint_id: str, path: str, *, offset: int = 0) -> bytes:
        request = messages.ReadFileRequest(checkpoint_id=checkpoint_id, path=path, offset=offset)
        return b"".join([part.data async for part in self.stub.ReadFile(request, timeout=10)])


@asynccontextmanager
async def client(running: Running, token: str, root: Path, *, run: int = 1) -> AsyncIterator[Client]:
    channel = running.channel(token)
    try:
        stub = cast("CheckpointsServiceAsyncStub", CheckpointsServiceStub(channel))
        yield Client(running=running, root=root, stub=stub, run=run)
    finally:
        await channel.close()


def trial(running: Running, *, run: int = 1, trial_id: str = TRIAL, experiment_id: str = EXPERIMENT) -> str:
    return running.trial_token(
        TrialRun(
            trial_id=trial_id, run=run, experiment_id=experiment_id, allocation_id="a", workspace="vision"
        )
    )
