"""A checkpoint as one download: a tar of all its files, created while it is sent."""

from __future__ import annotations

import asyncio
import re
import tarfile
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
import structlog
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as pb2
from resolute.api.checkpoints.v1 import checkpoints_service_pb2_grpc
from resolute.api.checkpoints.v1.checkpoint_pb2 import Checkpoint, File
from resolute.contracts.files.digests import hasher_for
from resolute_gateway.backends import Backends
from resolute_gateway.web.answers import refusal
from resolute_gateway.web.downloads.forwarding import Forwarding, refusal_of

PATH = "/checkpoints/{checkpoint_id}.tar"
_SERVICE = "/resolute.api.checkpoints.v1.CheckpointsService/ReadFile"
_MAX_FILES = 100_000
_PAGE = 10_000
_SECONDS = 60.0
_FILE_SECONDS = 24 * 3600.0
"""A browser may be slow; one that takes nothing for a minute is closed by the server."""
_ID = re.compile(r"[0-9a-f-]{36}")
_END = bytes(2 * tarfile.BLOCKSIZE)
_log = structlog.get_logger("gateway")


@dataclass(frozen=True, slots=True)
class _Entry:
    """A file with the header bytes before it in the archive."""

    file: File
    head: bytes

    @property
    def size(self) -> int:
        """Bytes in the archive."""
        return len(self.head) + self.file.size + _padding(self.file.size)


class CheckpointArchive:
    """Answers downloads of whole checkpoints.

    Args:
        backends: The services.
        authorized: Adds the session's token to a request from a page of this origin.
    """

    def __init__(self, backends: Backends, *, authorized: Callable[[Scope], Scope]) -> None:
        self._channel = backends.channel(_SERVICE)
        self._forwarding = Forwarding(backends.peers, authorized=authorized)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers with the archive, whose length is known from the start.

        Bytes are compared with the size and the digest of each file. Where they differ, the download ends
        before its length, which a browser shows as failed.
        """
        response = await self._response(Request(scope))
        try:
            await response(scope, receive, send)
        except (OSError, grpc.aio.AioRpcError) as failure:
            # The server closes what is not complete. Raised, it would be logged as a defect.
            reason = failure.details() if isinstance(failure, grpc.aio.AioRpcError) else str(failure)
            _log.warning("a download ended before its length", path=scope["path"], reason=reason)

    async def _response(self, request: Request) -> Response:
        checkpoint_id = request.path_params["checkpoint_id"]
        if self._channel is None or not _ID.fullmatch(checkpoint_id):
            return refusal(404, code="not_found", message=f"there is no checkpoint {checkpoint_id[:80]}")
        calls = _Calls(
            checkpoints_service_pb2_grpc.CheckpointsServiceStub(self._channel),
            self._forwarding.metadata(request),
        )
        try:
            checkpoint = await calls.checkpoint(checkpoint_id)
            files = await calls.files(checkpoint_id)
        except grpc.aio.AioRpcError as failure:
            return refusal_of(failure)
        if len(files) > _MAX_FILES:
            message = (
                f"it has more than {_MAX_FILES} files; run: resolute checkpoint download {checkpoint_id}"
            )
            return refusal(413, code="resource_exhausted", message=message)
        entries = await asyncio.to_thread(_entries, checkpoint, files)
        return StreamingResponse(
            _archive(calls, checkpoint_id, entries),
            media_type="application/x-tar",
            headers={
                "content-length": str(sum(entry.size for entry in entries) + len(_END)),
                "content-disposition": f'attachment; filename="checkpoint-{checkpoint_id}.tar"',
                "cache-control": "no-store",
            },
        )


@dataclass(frozen=True)
class _Calls:
    """Calls of the checkpoints service for one download."""

    stub: Any
    metadata: tuple[tuple[str, str], ...]

    async def checkpoint(self, checkpoint_id: str) -> Checkpoint:
        request = pb2.GetCheckpointRequest(checkpoint_id=checkpoint_id)
        response = await self.stub.GetCheckpoint(request, metadata=self.metadata, timeout=_SECONDS)
        found: Checkpoint = response.checkpoint
        return found

    async def files(self, checkpoint_id: str) -> list[File]:
        files: list[File] = []
        token = ""
        while len(files) <= _MAX_FILES:
            request = pb2.ListFilesRequest(checkpoint_id=checkpoint_id, page_size=_PAGE, page_token=token)
            page = await self.stub.ListFiles(request, metadata=self.metadata, timeout=_SECONDS)
            files.extend(page.files)
            token = page.next_page_token
            if not token:
                break
        return files

    def content(self, checkpoint_id: str, path: str) -> AsyncIterator[Any]:
        request = pb2.ReadFileRequest(checkpoint_id=checkpoint_id, path=path)
        content: AsyncIterator[Any] = self.stub.ReadFile(
            request, metadata=self.metadata, timeout=_FILE_SECONDS
        )
        return content


async def _archive(calls: _Calls, checkpoint_id: str, entries: Sequence[_Entry]) -> AsyncIterator[bytes]:
    for entry in entries:
        yield entry.head
        file = entry.file
        if not file.size:
            continue
        hasher, size = hasher_for(file.digest), 0
        async for piece in calls.content(checkpoint_id, file.path):
            size += len(piece.data)
            if hasher is not None:
                hasher.update(piece.data)
            yield piece.data
        if size != file.size or (hasher is not None and hasher.hexdigest() != file.digest.partition(":")[2]):
            raise OSError(f"checkpoint {checkpoint_id}: {file.path!r} is not what was committed")
        yield bytes(_padding(file.size))
    yield _END


def _entries(checkpoint: Checkpoint, files: Sequence[File]) -> list[_Entry]:
    seconds = checkpoint.commit_time.seconds or checkpoint.create_time.seconds
    return [_Entry(file, _head(file, seconds)) for file in files]


def _head(file: File, seconds: int) -> bytes:
    info = tarfile.TarInfo(file.path.removesuffix("/"))
    info.size, info.mtime = file.size, seconds
    if file.path.endswith("/"):
        info.type, info.mode = tarfile.DIRTYPE, 0o755
    return info.tobuf(tarfile.PAX_FORMAT)


def _padding(size: int) -> int:
    return -size % tarfile.BLOCKSIZE
