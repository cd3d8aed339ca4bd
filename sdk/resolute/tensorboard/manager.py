"""Copies TensorBoard files to the experiment's storage, for scripts that manage their files themselves."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resolute.core.tensorboard.destinations import Destination, open_destination
from resolute.core.tensorboard.file_copier import FileCopier
from resolute.core.tensorboard.manager import Mangler, PathSelector, keep_path, select_all
from resolute.tensorboard.paths import get_base_path, get_experiment_sync_path, get_sync_path

if TYPE_CHECKING:
    from typing_extensions import Self

_log = logging.getLogger("resolute.tensorboard")
_QUEUE_LENGTH = 50
_CLOSE_LOG_SECONDS = 10.0


class TensorboardManager:
    """Copies the files of a directory that have changed since the last copy.

    Args:
        base_path: The directory.
        sync_path: Path of the copies within the storage.
        async_upload: Whether a thread, started by ``start()``, copies them.
        sync_on_close: Whether ``close()`` copies the files that have changed.
        destination: The destination of the copies.
    """

    def __init__(
        self,
        base_path: Path,
        sync_path: Path,
        async_upload: bool = True,
        sync_on_close: bool = True,
        *,
        destination: Destination,
    ) -> None:
        self.base_path = base_path
        self.sync_path = sync_path
        self._sync_on_close = sync_on_close
        self._destination = destination
        self._copier = FileCopier(destination)
        self._requests: queue.Queue[Callable[[], None] | None] = queue.Queue(_QUEUE_LENGTH)
        self._thread: threading.Thread | None = None
        self._async = async_upload
        base_path.mkdir(parents=True, exist_ok=True)

    def start(self) -> None:
        """Begins the thread, where one copies."""
        if self._async and self._thread is None:
            self._thread = threading.Thread(target=self._upload_requested, name="tensorboard", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Copies the last changes, if that is wanted, and ends the thread once it has copied everything."""
        if self._sync_on_close:
            self.sync()
        if self._thread is None:
            return
        self._requests.put(None)
        while self._thread.is_alive():
            self._thread.join(_CLOSE_LOG_SECONDS)
            if self._thread.is_alive():
                _log.info("waiting for TensorBoard files to be copied")
        self._thread = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def list_tb_files(self, since: float = 0.0, selector: PathSelector = select_all) -> list[Path]:
        """Returns the files that were changed after a time.

        Args:
            since: The time, in seconds of the epoch.
            selector: Says of each file whether it is wanted.
        """
        files = (path for path in sorted(self.base_path.rglob("*")) if path.is_file())
        return [path for path in files if path.stat().st_mtime > since and selector(path)]

    def sync(self, selector: PathSelector = select_all, mangler: Mangler = keep_path, rank: int = 0) -> None:
        """Copies what has changed. A file that cannot be copied is logged: TensorBoard is only a view.

        Args:
            selector: Says of each file whether it is copied.
            mangler: Gives a file its path at the destination, from its relative path and the rank.
            rank: The rank.
        """
        copy = partial(
            self._copier.copy,
            self.base_path,
            select=selector,
            rename=lambda relative: mangler(relative, rank),
        )
        if self._thread is None:
            copy()
        else:
            self._requests.put(copy)

    def delete(self) -> None:
        """Removes what was copied."""
        self._destination.delete()

    def _upload_requested(self) -> None:
        while (request := self._requests.get()) is not None:
            request()


def build(
    cluster_id: str,
    experiment_id: str,
    trial_id: str | None,
    checkpoint_config: Mapping[str, Any] | str,
    container_path: str | None = None,
    async_upload: bool = True,
    sync_on_close: bool = True,
) -> TensorboardManager:
    """Returns a manager of this process's TensorBoard files.

    Args:
        cluster_id: Identifies the cluster.
        experiment_id: Number of the experiment.
        trial_id: Number of the trial; None for the files of the experiment.
        checkpoint_config: The section ``checkpoint_storage`` of a config; the files lie beside checkpoints.
        container_path: Directory in the place of the ``host_path`` of a ``shared_fs``.
        async_upload: Whether a thread copies files.
        sync_on_close: Whether ``close()`` copies the files that have changed.

    Raises:
        TypeError: The storage has no type, or one that does not exist.
    """
    sync_path = (
        get_experiment_sync_path(cluster_id, experiment_id)
        if trial_id is None
        else get_sync_path(cluster_id, experiment_id, trial_id)
    )
    return TensorboardManager(
        get_base_path(checkpoint_config if isinstance(checkpoint_config, Mapping) else {}),
        sync_path,
        async_upload,
        sync_on_close,
        destination=open_destination(checkpoint_config, sync_path, container_path=container_path),
    )
