"""Lists of files that may not fit one message: sent and read in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from resolute.api.checkpoints.v1 import checkpoint_pb2 as checkpoint
from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as checkpoints
from resolute.api.checkpoints.v1.checkpoints_service_pb2_grpc import CheckpointsServiceStub

_PIECE_BYTES = 1 << 20


def files_of(stub: CheckpointsServiceStub, found: checkpoint.Checkpoint) -> Sequence[checkpoint.File]:
    """Gives all files of a checkpoint, also where they did not fit the message that it came in."""
    if found.files or not found.file_count:
        return found.files
    files: list[checkpoint.File] = []
    request = checkpoints.ListFilesRequest(checkpoint_id=found.checkpoint_id)
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
    if request.ByteSize() <= _PIECE_BYTES:
        stub.CommitCheckpoint(request, timeout=deadline)
    else:
        stub.CommitCheckpointInPieces(_pieces(request), timeout=deadline)


def _pieces(
    request: checkpoints.CommitCheckpointRequest,
) -> Iterator[checkpoints.CommitCheckpointInPiecesRequest]:
    piece = checkpoints.CommitCheckpointRequest(
        checkpoint_id=request.checkpoint_id, run=request.run, metadata=request.metadata
    )
    size = piece.ByteSize()
    for field in ("files", "multiparts"):
        for entry in getattr(request, field):
            if size > _PIECE_BYTES:
                yield checkpoints.CommitCheckpointInPiecesRequest(piece=piece)
                piece, size = checkpoints.CommitCheckpointRequest(), 0
            getattr(piece, field).append(entry)
            size += entry.ByteSize()
    yield checkpoints.CommitCheckpointInPiecesRequest(piece=piece)
