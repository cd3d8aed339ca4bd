"""Commits of several messages: bounded, and read only for callers that own the checkpoint."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.services.in_process import Running, serving

from resolute.api.checkpoints.v1 import checkpoint_pb2 as types
from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as messages
from resolute.api.checkpoints.v1 import storage_pb2
from resolute.api.checkpoints.v1.checkpoints_service_pb2_grpc import CheckpointsServiceStub
from resolute.contracts.values import to_value
from resolute.errors import (
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    UnavailableError,
)
from resolute.rpc.channel import open_channel
from resolute_checkpoints.blueprint import BLUEPRINT
from resolute_checkpoints.servicers.chunked_commits import ChunkedCommits
from resolute_serving.context import TrialRun

EXPERIMENT = str(uuid.uuid4())
TRIAL, STRANGER = str(uuid.uuid4()), str(uuid.uuid4())
ENTRIES = 10_000
Chunk = messages.CommitCheckpointRequest


class Sender:
    """Sends one commit and counts the messages of it that were wanted."""

    def __init__(self, first: Chunk, chunk: Callable[[int], Chunk], *, count: int) -> None:
        self.sent = 0
        self._first = first
        self._chunk = chunk
        self._count = count

    def requests(self) -> Iterator[messages.CommitCheckpointInChunksRequest]:
        for number in range(self._count):
            self.sent += 1
            chunk = self._chunk(number) if number else self._first
            yield messages.CommitCheckpointInChunksRequest(chunk=chunk)


@contextmanager
def caller(running: Running, trial_id: str) -> Iterator[CheckpointsServiceStub]:
    token = running.trial_token(TrialRun(trial_id, 1, EXPERIMENT, "a", "vision"))
    with open_channel(running.address, token=lambda: token) as channel:
        yield CheckpointsServiceStub(channel)


def served(tmp_path: Path, scenario: Callable[[Running], None]) -> None:
    async def serve() -> None:
        async with serving([BLUEPRINT], tmp_path) as running:
            await asyncio.to_thread(scenario, running)

    asyncio.run(serve())


def begin(stub: CheckpointsServiceStub, root: Path) -> str:
    checkpoint_id = str(uuid.uuid4())
    storage = storage_pb2.Storage(directory=storage_pb2.Storage.Directory(path=str(root)))
    request = messages.BeginCheckpointRequest(
        checkpoint_id=checkpoint_id, trial_id=TRIAL, run=1, experiment_id=EXPERIMENT, storage=storage
    )
    stub.BeginCheckpoint(request)
    return checkpoint_id


def first_chunk(checkpoint_id: str) -> Chunk:
    return Chunk(checkpoint_id=checkpoint_id, run=1, metadata=to_value({"steps_completed": 1}))


def empty_files(_: int) -> Chunk:
    return Chunk(files=[types.File() for _ in range(ENTRIES)])


def long_paths(number: int) -> Chunk:
    return Chunk(files=[types.File(path=f"{number}/{entry}" + "x" * 900) for entry in range(1000)])


def empty_tags(_: int) -> Chunk:
    upload = Chunk.MultipartUpload(path="f", upload_id="u", part_etags=[""] * ENTRIES)
    return Chunk(multipart_uploads=[upload])


def test_nothing_more_is_read_for_a_caller_that_owns_no_such_checkpoint(tmp_path: Path) -> None:
    def scenario(running: Running) -> None:
        with caller(running, TRIAL) as owner, caller(running, STRANGER) as stranger:
            begun = begin(owner, tmp_path / "root")
            for checkpoint_id, error in ((begun, PermissionDeniedError), (TRIAL, NotFoundError)):
                sender = Sender(first_chunk(checkpoint_id), long_paths, count=1000)
                with pytest.raises(error):
                    stranger.CommitCheckpointInChunks(sender.requests(), timeout=60)
                assert sender.sent < 100

    served(tmp_path, scenario)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("chunk", [empty_files, long_paths, empty_tags])
def test_a_commit_is_refused_once_it_takes_more_than_its_bound(
    tmp_path: Path, chunk: Callable[[int], Chunk]
) -> None:
    def scenario(running: Running) -> None:
        with caller(running, TRIAL) as stub:
            sender = Sender(first_chunk(begin(stub, tmp_path / "root")), chunk, count=2000)
            with pytest.raises(InvalidArgumentError, match="in the messages of one commit; commit fewer"):
                stub.CommitCheckpointInChunks(sender.requests(), timeout=60)
            assert sender.sent < 600

    served(tmp_path, scenario)


def test_a_trial_commits_once_at_a_time() -> None:
    async def stream(*chunks: Chunk) -> AsyncIterator[messages.CommitCheckpointInChunksRequest]:
        for chunk in chunks:
            yield messages.CommitCheckpointInChunksRequest(chunk=chunk)

    async def owner_of(first: Chunk) -> str:
        return f"trial {first.run}"

    async def scenario() -> None:
        commits = ChunkedCommits(owner_of)
        files = Chunk(files=[types.File(path="f")])
        async with commits.joined(stream(Chunk(run=1), files, files)) as whole:
            assert len(whole.files) == 2
            with pytest.raises(UnavailableError, match="another commit of this trial is under way"):
                async with commits.joined(stream(Chunk(run=1))):
                    raise AssertionError
            async with commits.joined(stream(Chunk(run=2))):
                pass
        async with commits.joined(stream(Chunk(run=1))):
            pass

    asyncio.run(scenario())
