"""Decides which rank copies TensorBoard files, and when."""

from __future__ import annotations

import enum
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from resolute.core.tensorboard.event_thread import EventThread
from resolute.core.tensorboard.file_copier import FileCopier

PathSelector = Callable[[Path], bool]
"""Says of a file whether it is copied."""
Mangler = Callable[[Path, int], Path]
"""Gives a file its path at the destination, from its relative path and the rank."""


class TensorboardMode(enum.Enum):
    """The processes that write and copy TensorBoard files.

    Examples:
        >>> from resolute import core
        >>> with core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context:
        ...     context.train.upload_tensorboard_files()
    """

    AUTO = "AUTO"
    """Every reported number becomes an event, and files are copied now and then and at every checkpoint."""
    MANUAL = "MANUAL"
    """The script writes files and calls ``upload_tensorboard_files``."""


def select_all(path: Path) -> bool:  # noqa: ARG001 - the shape of a selector
    """Takes every file."""
    return True


def keep_path(path: Path, rank: int) -> Path:  # noqa: ARG001 - the shape of a mangler
    """Leaves each path as it is."""
    return path


class Tensorboard(Protocol):
    """The TensorBoard files of one process."""

    @property
    def path(self) -> Path:
        """Directory to write to; it exists."""

    def start(self) -> None:
        """Begins whatever runs in the background."""

    def upload(self, selector: PathSelector, mangler: Mangler) -> None:
        """Copies files because the script asks for it."""

    def sync(self) -> None:
        """Copies files because something worth keeping has just happened."""

    def close(self) -> None:
        """Ends what runs in the background and copies the rest."""


class LocalTensorboard:
    """TensorBoard files off cluster, which stay where they are written."""

    def __init__(self) -> None:
        self._path = Path(tempfile.gettempdir()) / f"tensorboard-local-{os.getpid()}"

    @property
    def path(self) -> Path:
        """A directory of this process under the system's temporary one."""
        self._path.mkdir(parents=True, exist_ok=True)
        return self._path

    def start(self) -> None:
        """Nothing continues."""

    def upload(self, selector: PathSelector, mangler: Mangler) -> None:
        """Nothing is copied."""

    def sync(self) -> None:
        """Nothing is copied."""

    def close(self) -> None:
        """Nothing is held."""


class ManualTensorboard:
    """TensorBoard files on a cluster that the script copies.

    Args:
        path: Directory to write to.
        copier: Copies files to the experiment's storage.
        rank: Rank of this process.
    """

    def __init__(self, path: Path, copier: FileCopier, *, rank: int) -> None:
        self._path = path
        self._copier = copier
        self._rank = rank

    @property
    def path(self) -> Path:
        """Directory to write to."""
        self._path.mkdir(parents=True, exist_ok=True)
        return self._path

    def start(self) -> None:
        """Nothing continues."""

    def upload(self, selector: PathSelector, mangler: Mangler) -> None:
        """Copies the selected files that have changed."""
        self._copier.copy(self.path, select=selector, rename=lambda relative: mangler(relative, self._rank))

    def sync(self) -> None:
        """Nothing: the script decides."""

    def close(self) -> None:
        """Nothing: the script decides."""


class AutoTensorboard:
    """TensorBoard files on a cluster that are written and copied automatically.

    Args:
        path: Directory to write to. The script may write its own files there.
        copier: Copies files to the experiment's storage.
        events: Turns reports into events; None if TensorBoard is not installed, and on all ranks except the
            chief.
    """

    def __init__(self, path: Path, copier: FileCopier, *, events: EventThread | None) -> None:
        self._path = path
        self._copier = copier
        self._events = events

    @property
    def path(self) -> Path:
        """Directory to write to."""
        self._path.mkdir(parents=True, exist_ok=True)
        return self._path

    def start(self) -> None:
        """Begins to turn reports into events."""
        if self._events is not None:
            self._events.start()

    def upload(self, selector: PathSelector, mangler: Mangler) -> None:
        """Fails: there is nothing to ask for.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError(
            "upload_tensorboard_files is for TensorboardMode.MANUAL; "
            "in TensorboardMode.AUTO files are copied on their own"
        )

    def sync(self) -> None:
        """Copies what has changed."""
        self._copier.copy(self.path)

    def close(self) -> None:
        """Turns the last reports into events and copies what has changed."""
        if self._events is not None:
            self._events.stop()
        self.sync()
