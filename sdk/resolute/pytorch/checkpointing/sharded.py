"""Checkpoints of sharded models, by ``torch.distributed.checkpoint``.

Every rank writes its own shards and reads only the files that it needs. So a model may be too large for one
process, and can be loaded by a different number of ranks.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import LoadPlan, LoadPlanner
from torch.futures import Future

from resolute.core import CheckpointContext, DownloadMode

_METADATA = ".metadata"


@contextlib.contextmanager
def checkpoint_writer(
    checkpoint: CheckpointContext, metadata: Mapping[str, Any] | None = None
) -> Iterator[tuple[FileSystemWriter, str]]:
    """Returns a storage writer for ``torch.distributed.checkpoint.save``; every rank enters and saves.

    The checkpoint counts once the block has ended without an error on every rank. Other files may be written
    beside the shards, into ``writer.path``.

    Args:
        checkpoint: The checkpoints of the trial, of as many ranks as the process group has.
        metadata: JSON-like data by name; on cluster ``steps_completed`` must be in it.

    Yields:
        The writer and the identifier of the checkpoint.
    """
    with checkpoint.store_path(metadata, shard=True) as (directory, checkpoint_id):
        # What is in the store is synced there.
        yield FileSystemWriter(directory, sync_files=False), checkpoint_id


class CheckpointReader(FileSystemReader):
    """A storage reader for ``torch.distributed.checkpoint.load``, which fetches the files this rank needs.

    Use it as a context manager; it removes the fetched files at its end.

    Args:
        checkpoint: The checkpoint context of the trial.
        storage_id: UUID of the checkpoint.

    Raises:
        CheckpointNotFound: There is no such checkpoint.
        DataLossError: A file differs from the committed one.
    """

    def __init__(self, checkpoint: CheckpointContext, storage_id: str) -> None:
        self._checkpoint = checkpoint
        self._storage_id = storage_id
        self._fetched: set[str] = set()
        self._directory = tempfile.TemporaryDirectory(prefix="resolute-shards-")
        super().__init__(self._directory.name)

    def __enter__(self) -> CheckpointReader:  # noqa: PYI034 - typing has Self only since 3.11
        """Does nothing: shards are downloaded when they are read."""
        return self

    def __exit__(self, *failure: object) -> None:
        """Removes the downloaded files."""
        self._directory.cleanup()

    def read_metadata(self, *arguments: Any, **options: Any) -> Metadata:
        """Reads which file has which shard."""
        self._fetch({_METADATA})
        return super().read_metadata(*arguments, **options)

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Reads the shards of a plan."""
        self._fetch({self.storage_data[item.storage_index].relative_path for item in plan.items})
        return super().read_data(plan, planner)

    def _fetch(self, paths: set[str]) -> None:
        missing = paths - self._fetched
        if missing:
            self._checkpoint.download(
                self._storage_id,
                Path(self._directory.name),
                DownloadMode.NoSharedDownload,
                selector=lambda path: path in missing,
            )
            self._fetched |= missing
