"""Reads every byte of a checkpoint in its storage, and lists the files that differ from the commit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from resolute.client.downloads.sources import DownloadMode, open_source
from resolute.client.remote.checkpoints import Checkpoints
from resolute.client.schema.records import CheckpointRecord, FileRecord
from resolute.client.schema.states import CheckpointState
from resolute.contracts.files.digests import hasher_for
from resolute.errors import DataLossError, FailedPreconditionError, NotFoundError
from resolute.transfer.sources import FileSource


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """One file that was read."""

    path: str
    size: int
    """Bytes that were committed."""
    fault: str = ""
    """What is wrong, as the end of a sentence; empty when nothing is."""
    compared: bool = True
    """Whether there was a digest to compare with."""


def verify(
    checkpoint: CheckpointRecord, *, registry: Checkpoints, mode: DownloadMode = DownloadMode.AUTO
) -> Iterator[CheckedFile]:
    """Reads the files of a checkpoint one after the other and compares them with their digests.

    Args:
        checkpoint: The checkpoint.
        registry: The checkpoints service.
        mode: Which way the bytes come.

    Yields:
        Each file, once it was read.

    Raises:
        FailedPreconditionError: The checkpoint is not committed, or its store is out of reach of ``mode``.
        UnavailableError: The service, or the store, cannot be reached.
    """
    if checkpoint.state not in {CheckpointState.COMPLETED, CheckpointState.PARTIALLY_DELETED}:
        raise FailedPreconditionError(
            f"checkpoint {checkpoint.uuid} is {checkpoint.state.name}; only committed ones can be verified"
        )
    with open_source(checkpoint, registry, mode) as source:
        for file in checkpoint.files:
            if not file.path.endswith("/"):
                yield _checked(file, source)


def _checked(file: FileRecord, source: FileSource) -> CheckedFile:
    summed = hasher_for(file.digest)
    size = 0

    def take(piece: bytes | memoryview) -> None:
        nonlocal size
        size += len(piece)
        if summed is not None:
            summed.update(piece)

    try:
        source.read(file.path, take)
    except (NotFoundError, DataLossError) as failure:
        return CheckedFile(file.path, file.size, fault=f"cannot be read: {failure}")
    fault = ""
    if size != file.size:
        fault = f"has {size} bytes instead of {file.size}"
    elif summed is not None and summed.hexdigest() != file.digest.partition(":")[2]:
        fault = "has another content than was committed"
    return CheckedFile(file.path, file.size, fault=fault, compared=summed is not None)
