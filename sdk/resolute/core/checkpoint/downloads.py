"""Downloads and verifies the files of a checkpoint."""

from __future__ import annotations

import enum
import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from resolute.core.checkpoint.collective_steps import run_on_local_ranks
from resolute.core.checkpoint.files.manifest import FileEntry, Selector, verify
from resolute.core.checkpoint.files.progress_log import ProgressFactory, log_progress
from resolute.core.checkpoint.files.view import has_to_be_copied
from resolute.core.checkpoint.registry import CheckpointRegistry, RegisteredCheckpoint
from resolute.core.distributed import DistributedContext
from resolute.errors import DataLossError
from resolute.transfer.holds import held

_log = logging.getLogger("resolute.core")


class DownloadMode(enum.Enum):
    """The processes that download when several processes of one machine want a checkpoint.

    Examples:
        >>> from resolute import core
        >>> with core.init(checkpoint_storage="download-example") as context:
        ...     with context.checkpoint.store_path({"steps_completed": 1}) as (path, storage_id):
        ...         _ = (path / "model.txt").write_text("weights")
        ...     mode = core.DownloadMode.NoSharedDownload
        ...     context.checkpoint.download(storage_id, "downloaded", mode)
    """

    LocalWorkersShareDownload = "LOCAL_WORKERS_SHARE_DOWNLOAD"
    """The first process of each machine, for all of them; all call in step."""
    NoSharedDownload = "NO_SHARED_DOWNLOAD"
    """Each for itself, whenever it wants."""


class Downloader:
    """Downloads checkpoints.

    Args:
        dist: The other processes.
        registry: The registry of committed checkpoints and their storages.
        watch: Creates the progress for bytes that are verified in place.
    """

    def __init__(
        self,
        dist: DistributedContext,
        *,
        registry: CheckpointRegistry,
        watch: ProgressFactory = log_progress,
    ) -> None:
        self._dist = dist
        self._registry = registry
        self._watch = watch

    def held(self, checkpoint_id: str) -> AbstractContextManager[None]:
        """Returns a context within which retention policies do not delete a checkpoint."""
        return held(lambda: self._registry.hold(checkpoint_id), name=f"checkpoint {checkpoint_id}")

    def alone(self, checkpoint_id: str, target: Path, selector: Selector | None) -> None:
        """Copies the selected files to a directory of this process."""
        registered = self._registry.find(checkpoint_id)
        paths = _paths(registered, checkpoint_id)
        wanted = [path for path in paths if selector is None or selector(path)]
        _copy(registered, checkpoint_id, target, wanted)

    def shared(self, checkpoint_id: str, target: Path, selector: Selector | None) -> None:
        """Copies what any process of this machine selects, once; returns when it is there."""
        is_local_chief = self._dist.local_rank == 0
        records: list[RegisteredCheckpoint] = []

        def look_up() -> list[str]:
            if not is_local_chief:
                return []
            records.append(self._registry.find(checkpoint_id))
            return _paths(records[0], checkpoint_id)

        paths = run_on_local_ranks(self._dist, look_up)[0]
        choices = run_on_local_ranks(self._dist, lambda: _choose(paths, selector))
        union = set().union(*choices)
        wanted = [path for path in paths if path in union]
        run_on_local_ranks(
            self._dist, lambda: _copy(records[0], checkpoint_id, target, wanted) if is_local_chief else None
        )

    def in_place(self, checkpoint_id: str, *, shared: bool) -> Path | None:
        """Returns the checked directory of a checkpoint whose files need not be copied; None for others.

        Args:
            checkpoint_id: The checkpoint.
            shared: Whether the processes of this machine call in step; then one checks for all.
        """
        if not shared:
            return self._check(checkpoint_id)
        directory = run_on_local_ranks(
            self._dist, lambda: self._check(checkpoint_id) if self._dist.local_rank == 0 else None
        )
        return directory[0]

    def _check(self, checkpoint_id: str) -> Path | None:
        registered = self._registry.find(checkpoint_id)
        directory = registered.store.in_place(checkpoint_id)
        if directory is None:
            return None
        files, name = registered.files or (), f"checkpoint {checkpoint_id}"
        if has_to_be_copied(directory, registered.store.list(checkpoint_id)):
            return None
        progress = self._watch(f"{name} is checked", sum(file.size for file in files))
        verify(directory, files, name=name, progress=progress)
        return directory


def _choose(paths: Sequence[str], selector: Selector | None) -> set[str]:
    return {path for path in paths if selector is None or selector(path)}


def _paths(registered: RegisteredCheckpoint, checkpoint_id: str) -> list[str]:
    if registered.files is None:
        return list(registered.store.list(checkpoint_id))
    for entry in registered.files:
        _check_path(entry, checkpoint_id)
    return [entry.path for entry in registered.files]


def _check_path(entry: FileEntry, checkpoint_id: str) -> None:
    if entry.path.startswith("/") or ".." in entry.path.split("/"):
        raise DataLossError(f"checkpoint {checkpoint_id} names a file outside of itself: {entry.path!r}")


def _copy(registered: RegisteredCheckpoint, checkpoint_id: str, target: Path, paths: Sequence[str]) -> None:
    registered.store.read(checkpoint_id, target, paths, expected=registered.files or ())
