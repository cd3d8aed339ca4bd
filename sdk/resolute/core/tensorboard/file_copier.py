"""Copies files that have changed to a directory that others read."""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

_log = logging.getLogger("resolute.core")


class FileCopier:
    """Remembers what was copied, so that each file goes again only when it has changed.

    Args:
        destination: Where files go; None where the storage takes no such files, then nothing is copied.
    """

    def __init__(self, destination: Path | None) -> None:
        self._destination = destination
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
        if self._destination is None:
            return
        with self._lock:
            for path in sorted(source.rglob("*")):
                if path.is_file() and (select is None or select(path)):
                    relative = path.relative_to(source)
                    self._copy_file(path, self._destination / (rename(relative) if rename else relative))

    def _copy_file(self, path: Path, target: Path) -> None:
        try:
            status = path.stat()
            version = (status.st_size, status.st_mtime_ns)
            if self._seen.get(target) == version:
                return
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
            shutil.copyfile(path, partial)
            partial.replace(target)
            self._seen[target] = version
        except OSError as failure:
            _log.warning("a TensorBoard file was not copied: %s", failure)
