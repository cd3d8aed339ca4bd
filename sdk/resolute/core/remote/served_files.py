"""Checkpoints whose files this process cannot access: the checkpoints service sends them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import final

from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as checkpoints
from resolute.core.checkpoint.files.manifest import FileEntry, compare
from resolute.core.checkpoint.files.progress_log import ProgressFactory, log_progress
from resolute.core.checkpoint.files.receiving import receive_files
from resolute.core.checkpoint.storage import DirectoryStorage, Storage
from resolute.core.checkpoint.stores.base import ReadableStore
from resolute.core.remote.presigned_urls import RemoteUrlSigner, open_remote_store
from resolute.core.remote.session import Session
from resolute.errors import UnauthenticatedError, UnavailableError
from resolute.transfer.sources import ResumingSource
from resolute.transfer.transport import Sink
from resolute.transfer.workers import Cancellation


def open_checkpoint(
    checkpoint_id: str, storage: Storage, session: Session, *, watch: ProgressFactory = log_progress
) -> ReadableStore:
    """Returns what a checkpoint is read from.

    A container sees the directory of its workspace, and not those of the checkpoints that another workspace
    lets it read, or that were written elsewhere.

    Args:
        checkpoint_id: The checkpoint.
        storage: Where it lies.
        session: The services.
        watch: Creates the progress of a download.
    """
    if isinstance(storage, DirectoryStorage) and not _is_seen(storage.path / checkpoint_id):
        return ServedStore(session, watch=watch)
    return open_remote_store(storage, session, watch=watch)


def _is_seen(directory: Path) -> bool:
    with contextlib.suppress(OSError):
        next(directory.iterdir(), None)
        return True
    return False


@final
class ServedStore:
    """A store whose files the checkpoints service sends.

    Args:
        session: The services.
        watch: Creates the progress of a download.
    """

    def __init__(self, session: Session, *, watch: ProgressFactory = log_progress) -> None:
        self._session = session
        self._watch = watch

    def in_place(self, checkpoint_id: str) -> Path | None:
        """None: files have to be copied."""
        return None

    def list(self, checkpoint_id: str) -> dict[str, int]:
        """Bytes by relative path."""
        return RemoteUrlSigner(self._session).sizes(checkpoint_id)

    def read(
        self, checkpoint_id: str, target: Path, paths: Iterable[str], *, expected: Sequence[FileEntry]
    ) -> None:
        """Receives files and compares every byte with what was committed.

        Raises:
            DataLossError: Files are not what was committed, or are gone.
            QuotaError: The disk of ``target`` is full.
            UnavailableError: The service was away for longer than the outage timeout.
        """
        name, stop = f"checkpoint {checkpoint_id}", Cancellation()
        source = _ServedFiles(checkpoint_id, self._session, sleep=stop.sleep)
        received = receive_files(
            source, target, paths, expected=expected, name=name, watch=self._watch, stop=stop
        )
        compare(expected, received, name=name)


@final
class _ServedFiles:
    is_local = False
    parallel = False

    def __init__(self, checkpoint_id: str, session: Session, *, sleep: Callable[[float], None]) -> None:
        self._checkpoint_id = checkpoint_id
        self._session = session
        self._resuming = ResumingSource(self._fetch, outage_timeout=session.outage_timeout, sleep=sleep)

    def read(self, path: str, take: Sink, *, start: int = 0, size: int | None = None) -> None:
        self._resuming.read(path, take, start=start, size=size)

    def _fetch(self, path: str, take: Sink, start: int, size: int | None) -> None:
        self._session.check_process()
        request = checkpoints.ReadFileRequest(checkpoint_id=self._checkpoint_id, path=path, offset=start)
        stream, left = self._session.checkpoints.ReadFile(request), size
        try:
            for response in stream:
                piece = response.data[:left]
                take(piece)
                left = None if left is None else left - len(piece)
                if left == 0:
                    return
        except UnauthenticatedError as failure:
            # A token expires only while the supervisor cannot renew it.
            raise UnavailableError(f"the token was not renewed: {failure}") from failure
        finally:
            stream.cancel()
