"""Checkpoints in a directory that a trial does not see, as its process reads them through the service."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.services.in_process import Running, serving

from resolute.api.checkpoints.v1 import checkpoint_pb2 as types
from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as messages
from resolute.api.checkpoints.v1 import storage_pb2
from resolute.api.checkpoints.v1.checkpoints_service_pb2_grpc import CheckpointsServiceStub
from resolute.contracts.values import to_value
from resolute.core.checkpoint.files.manifest import FileEntry, hash_files
from resolute.core.checkpoint.storage import DirectoryStorage
from resolute.core.remote.registry import RemoteRegistry
from resolute.core.remote.served_files import ServedStore, open_checkpoint
from resolute.core.remote.session import Session
from resolute.errors import DataLossError, PermissionDeniedError, UnauthenticatedError, UnavailableError
from resolute.runtime.connection import Connection
from resolute_checkpoints.blueprint import BLUEPRINT
from resolute_serving.context import TrialRun

FILES = {"weights": os.urandom(5 << 20), "empty": b"", "data/more": b"of step 1"}


@dataclass
class Case:
    """A checkpoint of workspace 1 in a directory, and processes of trials of other workspaces."""

    running: Running
    folder: Path
    checkpoint_id: str
    root: Path
    entries: list[FileEntry]

    def session(self, *, workspace_id: int = 2, source: str = "") -> Session:
        """A process of another experiment's trial."""
        run = TrialRun(
            str(uuid.uuid4()),
            1,
            str(uuid.uuid4()),
            "b",
            f"w{workspace_id}",
            workspace_id=workspace_id,
            source_checkpoint_id=source,
        )
        token = self.folder / f"token-{run.trial_id}"
        token.write_text(self.running.trial_token(run))
        connection = Connection(
            address=self.running.address,
            experiment_id=run.experiment_id,
            trial_id=run.trial_id,
            run=1,
            token_path=str(token),
        )
        return Session(connection, tls=self.running.tls, outage_timeout=30.0, sleep=lambda _: None)


@asynccontextmanager
async def case(tmp_path: Path) -> AsyncIterator[Case]:
    root, checkpoint_id = tmp_path / "root", str(uuid.uuid4())
    async with serving([BLUEPRINT], tmp_path, checkpoints_root=root) as running:
        trial_id, experiment_id = str(uuid.uuid4()), str(uuid.uuid4())
        token = running.trial_token(TrialRun(trial_id, 1, experiment_id, "a", "w1", workspace_id=1))
        channel = running.channel(token)
        stub: Any = CheckpointsServiceStub(channel)
        await stub.BeginCheckpoint(
            messages.BeginCheckpointRequest(
                checkpoint_id=checkpoint_id,
                trial_id=trial_id,
                run=1,
                experiment_id=experiment_id,
                storage=storage_pb2.Storage(directory=storage_pb2.Storage.Directory(path=str(root))),
            )
        )
        for path, content in FILES.items():
            target = root / checkpoint_id / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        entries = hash_files(root / checkpoint_id, sorted(FILES))
        await stub.CommitCheckpoint(
            messages.CommitCheckpointRequest(
                checkpoint_id=checkpoint_id,
                run=1,
                files=[types.File(path=one.path, size=one.size, digest=one.digest) for one in entries],
                metadata=to_value({"steps_completed": 1}),
            )
        )
        await channel.close()
        yield Case(running, tmp_path, checkpoint_id, root, entries)


def read(session: Session, one: Case, target: Path) -> dict[str, bytes]:
    """Reads all files of the checkpoint through the service."""
    store = ServedStore(session)
    assert store.list(one.checkpoint_id) == {path: len(content) for path, content in FILES.items()}
    assert store.in_place(one.checkpoint_id) is None
    store.read(one.checkpoint_id, target, sorted(FILES), expected=one.entries)
    return {path: (target / path).read_bytes() for path in FILES}


def test_what_is_seen_is_read_in_place_and_what_is_not_through_the_service(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with case(tmp_path) as one:
            session = one.session(source=one.checkpoint_id)
            seen = open_checkpoint(one.checkpoint_id, DirectoryStorage(one.root), session)
            assert seen.in_place(one.checkpoint_id) == one.root / one.checkpoint_id
            elsewhere = DirectoryStorage(tmp_path / "not-mounted")
            assert isinstance(open_checkpoint(one.checkpoint_id, elsewhere, session), ServedStore)
            assert await asyncio.to_thread(read, session, one, tmp_path / "copy") == FILES
            session.close()

    asyncio.run(scenario())


def test_the_service_gives_a_trial_of_another_workspace_what_its_config_starts_from_alone(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with case(tmp_path) as one:
            for session in (one.session(), one.session(source=str(uuid.uuid4()))):
                with pytest.raises(PermissionDeniedError):
                    await asyncio.to_thread(read, session, one, tmp_path / "copy")
                registry = RemoteRegistry(session, storage=storage_pb2.Storage())
                with pytest.raises(PermissionDeniedError):
                    await asyncio.to_thread(registry.find, one.checkpoint_id)
                session.close()
            assert not (tmp_path / "copy").exists()

    asyncio.run(scenario())


class Broken:
    """The stub, whose first streams break off after some messages."""

    def __init__(self, stub: Any, failures: list[Exception]) -> None:
        self._stub = stub
        self._failures = failures
        self.offsets: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stub, name)

    def ReadFile(self, request: messages.ReadFileRequest) -> Any:  # noqa: N802 - a name of the contract
        """Sends a file, and breaks off."""
        if request.path != "weights":
            return self._stub.ReadFile(request)
        self.offsets.append(request.offset)
        return _Stream(self._stub.ReadFile(request), self._failures.pop(0) if self._failures else None)


class _Stream:
    def __init__(self, stream: Any, failure: Exception | None) -> None:
        self._stream = stream
        self._failure = failure

    def __iter__(self) -> Iterator[Any]:
        for number, message in enumerate(self._stream):
            if number == 2 and self._failure is not None:
                raise self._failure
            yield message

    def cancel(self) -> None:
        """Ends the call."""
        self._stream.cancel()


def test_a_stream_that_breaks_off_is_read_on_from_there(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with case(tmp_path) as one:
            session = one.session(workspace_id=1)
            broken = Broken(
                session.checkpoints,
                [UnavailableError("the service restarts"), UnauthenticatedError("the token has expired")],
            )
            session.__dict__["checkpoints"] = broken
            assert await asyncio.to_thread(read, session, one, tmp_path / "copy") == FILES
            assert broken.offsets == [0, 2 << 20, 4 << 20]
            session.close()

    asyncio.run(scenario())


def test_a_file_that_is_not_what_was_committed_is_no_part_of_a_restored_checkpoint(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with case(tmp_path) as one:
            session = one.session(workspace_id=1)
            path = one.root / one.checkpoint_id / "data/more"
            path.write_bytes(b"of step 2")
            with pytest.raises(DataLossError, match="data/more has another content"):
                await asyncio.to_thread(read, session, one, tmp_path / "copy")
            path.unlink()
            with pytest.raises(DataLossError, match=r"'data/more' .* is not there"):
                await asyncio.to_thread(read, session, one, tmp_path / "copy")
            session.close()

    asyncio.run(scenario())
