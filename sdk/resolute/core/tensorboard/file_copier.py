"""Copies changed files to their destination, and logs the media in them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from resolute.core.tensorboard.destinations import Destination
from resolute.core.tensorboard.event_media import EventMedia
from resolute.errors import ResoluteError

_log = logging.getLogger("resolute.core")


class FileCopier:
    """Copies files, and again only those that have changed.

    Args:
        destination: The destination; None if the storage takes no such files: then nothing is copied.
        media: Logs the media of event files; None if TensorBoard is not installed, and on all ranks except
            the chief.
    """

    def __init__(self, destination: Destination | None, *, media: EventMedia | None = None) -> None:
        self._destination = destination
        self._media = media
        self._seen: dict[Path, tuple[int, int]] = {}
        self._lock = threading.Lock()

    def copy(
        self,
        source: Path,
        *,
        select: Callable[[Path], bool] | None = None,
        rename: Callable[[Path], Path] | None = None,
    ) -> None:
        """Copies the files below a directory that have changed since they were copied last.

        A file that cannot be copied is logged: TensorBoard is a view, no reason to end the training.

        Args:
            source: The directory.
            select: Says of each file whether it is copied; None for all.
            rename: Gives a relative path its path at the destination; None keeps it.
        """
        if self._media is not None:
            self._media.collect(source)
        if self._destination is None:
            return
        with self._lock:
            for path in sorted(source.rglob("*")):
                if path.is_file() and (select is None or select(path)):
                    relative = path.relative_to(source)
                    name = (rename(relative) if rename else relative).as_posix()
                    self._copy_file(path, name, self._destination)

    def _copy_file(self, path: Path, name: str, destination: Destination) -> None:
        try:
            status = path.stat()
            version = (status.st_size, status.st_mtime_ns)
            if self._seen.get(path) != version:
                destination.put(path, name)
                self._seen[path] = version
        except (OSError, ResoluteError) as failure:
            _log.warning("the TensorBoard file %s was not copied: %s", path, failure)
