"""Lists of files that may exceed one message: they are sent in chunks and read in pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from resolute.api.checkpoints.v1 import checkpoint_pb2 as checkpoint
from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as checkpoints
from resolute.api.checkpoints.v1.checkpoints_service_pb2_grpc import CheckpointsServiceStub

_CHUNK_BYTES = 1 << 20
_PAGE_FILES = 10_000


def files_of(stub: CheckpointsServiceStub, record: checkpoint.Checkpoint) -> Sequence[checkpoint.File]:
    """Returns all files of a checkpoint, also where they did not fit the message that it came in."""
    if record.files or not record.file_count:
        return record.files
    files: list[checkpoint.File] = []
    request = checkpoints.ListFilesRequest(checkpoint_id=record.checkpoint_id, page_size=_PAGE_FILES)
    while True:
        page = stub.ListFiles(request)
        files += page.files
        if not page.next_page_token:
            return files
        request.page_token = page.next_page_token


def commit(
    stub: CheckpointsServiceStub, request: checkpoints.CommitCheckpointRequest, *, deadline: float
) -> None:
    """Commits a checkpoint, in as many messages as it takes.

    Args:
        stub: The registry.
        request: What is committed.
        deadline: Seconds for the service to look at every file.
    """
    if request.ByteSize() <= _CHUNK_BYTES:
        stub.CommitCheckpoint(request, timeout=deadline)
    else:
        stub.CommitCheckpointInChunks(_chunks(request), timeout=deadline)


def _chunks(
    request: checkpoints.CommitCheckpointRequest,
) -> Iterator[checkpoints.CommitCheckpointInChunksRequest]:
    chunk = checkpoints.CommitCheckpointRequest(
        checkpoint_id=request.checkpoint_id,
        run=request.run if request.HasField("run") else None,
        metadata=request.metadata,
    )
    size = chunk.ByteSize()
    for field in ("files", "multipart_uploads"):
        for entry in getattr(request, field):
            if size > _CHUNK_BYTES:
                yield checkpoints.CommitCheckpointInChunksRequest(chunk=chunk)
                chunk, size = checkpoints.CommitCheckpointRequest(), 0
            getattr(chunk, field).append(entry)
            size += entry.ByteSize()
    yield checkpoints.CommitCheckpointInChunksRequest(chunk=chunk)
