"""Checkpoints in a directory."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from resolute.core.checkpoint.files.manifest import (
    FileEntry,
    algorithms_of,
    compare,
    copy_and_hash,
    list_directory,
    sync_directories,
)
from resolute.core.checkpoint.files.progress_log import ProgressFactory, log_progress
from resolute.core.checkpoint.files.record import RECORDS
from resolute.core.checkpoint.files.reuse import Reuse
from resolute.core.checkpoint.stores.base import check_identifier
from resolute.errors import FailedPreconditionError, QuotaError
from resolute.transfer.disk import full_disk_errors, require_room
from resolute.transfer.retries import retry_transfer
from resolute.trial_errors import CheckpointNotFound

_REMEDY = "free some space and repeat"
_T = TypeVar("_T")


class DirectoryStore:
    """A directory that every process of the trial and the service see under the same path.

    Files that an earlier checkpoint has are hard-linked, not copied: the file system counts their users.

    Args:
        base: The directory; each checkpoint is a directory of its own in it.
        reuse: Finds files of earlier checkpoints; None copies everything.
        watch: Creates the progress of a transfer.
        full_timeout: Seconds to wait while the disk is full.
        sleep: Waits some seconds.
    """

    accepts_unrecorded = True
    """A directory that was copied from elsewhere is whole as far as anyone knows."""

    def __init__(
        self,
        base: Path,
        *,
        reuse: Reuse | None = None,
        watch: ProgressFactory = log_progress,
        full_timeout: float = 0.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._base = base
        self._reuse = reuse
        self._watch = watch
        self._full_timeout = full_timeout
        self._sleep = sleep

    def in_place(self, checkpoint_id: str) -> Path | None:
        """The directory of the checkpoint, whether or not it is there."""
        return self._path(checkpoint_id)

    def write(self, checkpoint_id: str, source: Path, paths: Iterable[str]) -> list[FileEntry]:
        """Copies files in, through to the disk.

        Raises:
            QuotaError: The disk was full for longer than the timeout.
        """
        wanted = list(paths)
        return self._when_there_is_room(lambda: self._write(checkpoint_id, source, wanted))

    def await_room(self, size: int) -> None:
        """Waits until the disk has so many bytes free.

        Raises:
            QuotaError: It did not within the timeout.
        """
        self._when_there_is_room(lambda: require_room(self._base, size, remedy=_REMEDY))

    def _when_there_is_room(self, work: Callable[[], _T]) -> _T:
        return retry_transfer(
            work, outage_timeout=self._full_timeout, sleep=self._sleep, retried=(QuotaError,)
        )

    def _write(self, checkpoint_id: str, source: Path, wanted: Sequence[str]) -> list[FileEntry]:
        target = self._path(checkpoint_id)
        linked = self._link(checkpoint_id, source, wanted)
        rest = [path for path in wanted if path not in linked]
        total = sum(os.stat(f"{source}/{path}").st_size for path in rest if not path.endswith("/"))  # noqa: PTH116 - for 100 000 files
        progress = self._watch(f"checkpoint {checkpoint_id} is copied to {self._base}", total)
        with (
            full_disk_errors(f"write checkpoint {checkpoint_id} to {self._base}", remedy=_REMEDY),
            _removed_on_error(target, rest),
        ):
            copied = copy_and_hash(source, target, rest, on_disk=True, progress=progress)
            sync_directories(target, wanted)
        if self._reuse is not None:
            self._reuse.sent(copied)
        return [*copied, *linked.values()]

    def list(self, checkpoint_id: str) -> dict[str, int]:
        """Bytes by relative path.

        Raises:
            CheckpointNotFound: There is no such directory.
        """
        return list_directory(self._existing(checkpoint_id))

    def read(
        self, checkpoint_id: str, target: Path, paths: Iterable[str], *, expected: Sequence[FileEntry]
    ) -> None:
        """Copies files out.

        Raises:
            CheckpointNotFound: The directory or one of the files is not there.
            DataLossError: A file is not what was expected.
            QuotaError: The disk is full.
        """
        source = self._existing(checkpoint_id)
        wanted = set(paths)
        total = sum(entry.size for entry in expected if entry.path in wanted)
        progress = self._watch(f"checkpoint {checkpoint_id} is copied to {target}", total)
        try:
            with full_disk_errors(f"copy checkpoint {checkpoint_id} to {target}", remedy=_REMEDY):
                copies = copy_and_hash(
                    source, target, sorted(wanted), algorithms_of(expected), on_disk=False, progress=progress
                )
        except FileNotFoundError as failure:
            raise CheckpointNotFound(f"a file of checkpoint {checkpoint_id} is gone: {failure}") from failure
        compare(expected, copies, name=f"checkpoint {checkpoint_id}")

    def delete(self, checkpoint_id: str) -> None:
        """Removes the directory.

        Raises:
            FailedPreconditionError: Something in it cannot be removed.
        """
        path = self._path(checkpoint_id)
        try:
            # What is not found was removed by another process meanwhile, which may have left the rest.
            while path.exists():
                with contextlib.suppress(FileNotFoundError):
                    shutil.rmtree(path)
        except OSError as failure:
            raise FailedPreconditionError(
                f"not all files of checkpoint {checkpoint_id} can be removed ({failure}); correct this, "
                "and call delete() again"
            ) from failure

    def record(self, checkpoint_id: str) -> bytes | None:
        """What was kept of a checkpoint; None if nothing was."""
        try:
            return self._record(checkpoint_id).read_bytes()
        except FileNotFoundError:
            return None

    def write_record(self, checkpoint_id: str, content: bytes) -> None:
        """Keeps something of a checkpoint, in one step, through to the disk.

        Raises:
            QuotaError: The disk is full.
        """
        path = self._record(checkpoint_id)
        partial = path.with_name(f".{path.name}.partial")
        with full_disk_errors(f"write {path}", remedy=_REMEDY):
            path.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as output:
                output.write(content)
                output.flush()
                os.fsync(output.fileno())
            partial.replace(path)
            sync_directories(path.parent, ())

    def delete_record(self, checkpoint_id: str) -> None:
        """Forgets a checkpoint."""
        path = self._record(checkpoint_id)
        if path.exists():
            # Files that a crash of the machine brought back would count without the record.
            sync_directories(path.parent, ())
            path.unlink(missing_ok=True)

    def _link(self, checkpoint_id: str, source: Path, paths: Iterable[str]) -> dict[str, FileEntry]:
        """Links what earlier checkpoints have; returns it by path."""
        if self._reuse is None:
            return {}
        target, linked = self._path(checkpoint_id), {}
        for path, held in self._reuse.find(checkpoint_id, source, paths).items():
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            # Deleted meanwhile, or a file system without links: then it is copied like any other.
            with contextlib.suppress(OSError):
                os.link(self._base / held.home, target / path)
                linked[path] = held.entry
        return linked

    def _path(self, checkpoint_id: str) -> Path:
        check_identifier(checkpoint_id)
        return self._base / checkpoint_id

    def _record(self, checkpoint_id: str) -> Path:
        check_identifier(checkpoint_id)
        return self._base / RECORDS / f"{checkpoint_id}.json"

    def _existing(self, checkpoint_id: str) -> Path:
        path = self._path(checkpoint_id)
        if not path.is_dir():
            raise CheckpointNotFound(f"checkpoint {checkpoint_id} has no files: there is no directory {path}")
        return path


@contextlib.contextmanager
def _removed_on_error(target: Path, paths: Iterable[str]) -> Iterator[None]:
    """Removes what was copied if the block fails: others may need the room while this one waits for more."""
    try:
        yield
    except OSError:
        for path in paths:
            if not path.endswith("/"):
                (target / path).unlink(missing_ok=True)
        raise
