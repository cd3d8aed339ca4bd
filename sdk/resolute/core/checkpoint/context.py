"""Writes and reads checkpoints: directories of files with metadata."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from resolute.core.checkpoint.agreement import together, together_local
from resolute.core.checkpoint.manifest import Selector
from resolute.core.checkpoint.registry import CheckpointRegistry, LocalRegistry
from resolute.core.checkpoint.restore import DownloadMode, Downloads
from resolute.core.checkpoint.stores import CheckpointStore
from resolute.core.checkpoint.transfer import Uploads
from resolute.core.distributed import DistributedContext
from resolute.core.resources import merged_metadata

_log = logging.getLogger("resolute.core")


def _nothing() -> None:
    """Where nothing has to be done."""


class CheckpointContext:
    """Writes and reads checkpoints. Get it as ``Context.checkpoint``.

    A checkpoint counts only once all its files are safe and all reports before it have arrived; one that was
    interrupted leaves nothing that anyone would restore.
    """

    def __init__(
        self,
        dist: DistributedContext,
        *,
        store: CheckpointStore,
        registry: CheckpointRegistry,
        flush: Callable[[], None] = _nothing,
        committed: Callable[[], None] = _nothing,
    ) -> None:
        self._dist = dist
        self._registry = registry
        self._store = store
        self._uploads = Uploads(dist, store=store, registry=registry, flush=flush, committed=committed)
        self._downloads = Downloads(dist, registry=registry)

    def upload(
        self,
        ckpt_dir: str | os.PathLike[str] | None,
        metadata: Mapping[str, Any] | None = None,
        *,
        shard: bool = False,
        selector: Selector | None = None,
    ) -> str:
        """Makes a checkpoint of a directory.

        Args:
            ckpt_dir: The directory; ``metadata.json`` is written into it. None on ranks that bring nothing,
                with ``shard`` only.
            metadata: JSON-like data by name; on cluster ``steps_completed`` must be in it.
            shard: Whether every rank calls, each with a part of the checkpoint. Ranks that name the same
                directory upload it once; equal files of one name too.
            selector: Says of each path whether it belongs to the checkpoint; directories end in a slash.

        Returns:
            The identifier of the checkpoint.

        Raises:
            RuntimeError: A worker calls without ``shard``; there is no directory; or ranks bring different
                files of one name, or different metadata.
            ValueError: ``steps_completed`` is missing.
        """
        source = None if ckpt_dir is None else Path(ckpt_dir)
        if shard:
            return self._uploads.shards(source, metadata, selector)
        self._check_chief("upload")
        if source is None:
            raise RuntimeError(
                "cannot call CheckpointContext.upload(ckpt_dir=None, shard=False): "
                "without shards there must be a directory"
            )
        return self._uploads.alone(source, metadata, selector)

    @contextlib.contextmanager
    def store_path(
        self, metadata: Mapping[str, Any] | None = None, *, shard: bool = False
    ) -> Iterator[tuple[Path, str]]:
        """Gives a directory to write a checkpoint to; it becomes one when the block ends without an error.

        Args:
            metadata: JSON-like data by name; on cluster ``steps_completed`` must be in it.
            shard: Whether every rank enters, each to write a part of the checkpoint.

        Yields:
            The directory and the identifier of the checkpoint.

        Raises:
            RuntimeError: A worker calls without ``shard``; or ranks write different files of one name, or
                give different metadata.
            ValueError: ``steps_completed`` is missing.
        """
        if not shard:
            self._check_chief("store_path")
            self._registry.prepare(metadata)
        with self._store_shards(metadata) if shard else self._store_alone(metadata) as entered:
            yield entered

    def download(
        self,
        storage_id: str,
        ckpt_dir: str | os.PathLike[str],
        download_mode: DownloadMode = DownloadMode.LocalWorkersShareDownload,
        *,
        selector: Selector | None = None,
    ) -> None:
        """Copies the files of a checkpoint to a directory and checks them.

        Args:
            storage_id: The checkpoint.
            ckpt_dir: The directory; created if need be.
            download_mode: Who downloads when several processes of one machine call.
            selector: Says of each path whether it is wanted. In a shared download everything comes that any
                of the processes wants.

        Raises:
            CheckpointNotFound: There is no such checkpoint.
            DataLossError: A file is not what was committed.
        """
        if DownloadMode(download_mode) is DownloadMode.NoSharedDownload:
            self._downloads.alone(storage_id, Path(ckpt_dir), selector)
        else:
            self._downloads.shared(storage_id, Path(ckpt_dir), selector)

    @contextlib.contextmanager
    def restore_path(
        self,
        storage_id: str,
        download_mode: DownloadMode = DownloadMode.LocalWorkersShareDownload,
        *,
        selector: Selector | None = None,
    ) -> Iterator[Path]:
        """Gives a directory with the checked files of a checkpoint, to read from for the length of a block.

        Args:
            storage_id: The checkpoint.
            download_mode: Who downloads when several processes of one machine call.
            selector: Says of each path whether it is wanted; without effect where files can be read in place.

        Yields:
            The directory.

        Raises:
            CheckpointNotFound: There is no such checkpoint.
            DataLossError: A file is not what was committed.
        """
        shared = DownloadMode(download_mode) is DownloadMode.LocalWorkersShareDownload
        directory = self._downloads.in_place(storage_id, shared=shared)
        if directory is not None:
            if selector is not None:
                _log.warning("restore_path() ignores its selector: the files are read where they lie")
            yield directory
            return
        with self._downloaded(storage_id, shared=shared, selector=selector) as downloaded:
            yield downloaded

    def get_metadata(self, storage_id: str) -> dict[str, Any]:
        """Returns the metadata of a checkpoint.

        Raises:
            CheckpointNotFound: There is no such checkpoint.
            NotImplementedError: Off cluster.
        """
        return self._registry.metadata(storage_id)

    def delete(self, storage_id: str) -> None:
        """Removes a checkpoint, files first. Nothing happens if it is gone already."""
        self._registry.delete(storage_id)

    def _check_chief(self, method: str) -> None:
        if self._dist.rank:
            raise RuntimeError(
                f"cannot call CheckpointContext.{method}(shard=False) from non-chief worker of rank "
                f"{self._dist.rank}: only the chief, rank 0, may; with shard=True all ranks do"
            )

    @contextlib.contextmanager
    def _store_alone(self, metadata: Mapping[str, Any] | None) -> Iterator[tuple[Path, str]]:
        checkpoint_id = self._uploads.begin()
        with self._uploads.giving_up(checkpoint_id), self._place(checkpoint_id) as place:
            yield place.directory, checkpoint_id
            commit = self._uploads.adopt if place.in_store else self._uploads.copy_in
            commit(checkpoint_id, place.directory, metadata)

    @contextlib.contextmanager
    def _store_shards(self, metadata: Mapping[str, Any] | None) -> Iterator[tuple[Path, str]]:
        is_chief = self._dist.rank == 0
        checkpoint_id = together(self._dist, lambda: self._uploads.begin() if is_chief else "")[0]
        guard = self._uploads.giving_up(checkpoint_id) if is_chief else contextlib.nullcontext()
        with guard, self._place(checkpoint_id) as place:
            try:
                yield place.directory, checkpoint_id
            except Exception as failure:  # noqa: BLE001 - raised again, once the others know
                self._fail_together(failure)
            if place.in_store:
                self._adopt_together(checkpoint_id, place.directory, metadata)
            else:
                self._uploads.shards(place.directory, metadata, None, checkpoint_id=checkpoint_id)

    def _fail_together(self, failure: Exception) -> NoReturn:
        """Raises a failure of this rank, after telling the others, who would wait for it otherwise."""

        def fail() -> NoReturn:
            raise failure

        together(self._dist, fail)
        raise failure

    def _adopt_together(
        self, checkpoint_id: str, directory: Path, metadata: Mapping[str, Any] | None
    ) -> None:
        def flush() -> Mapping[str, Any] | None:
            self._uploads.flush()
            return metadata

        merged = merged_metadata(together(self._dist, flush))
        together(
            self._dist,
            lambda: self._uploads.adopt(checkpoint_id, directory, merged) if self._dist.rank == 0 else None,
        )

    @contextlib.contextmanager
    def _place(self, checkpoint_id: str) -> Iterator[_Place]:
        """Gives a directory to write to: that of the store, or one that is copied and removed."""
        directory = self._store.in_place(checkpoint_id)
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
            yield _Place(directory, in_store=True)
            return
        with tempfile.TemporaryDirectory(prefix="resolute-checkpoint-") as temporary:
            yield _Place(Path(temporary), in_store=False)

    @contextlib.contextmanager
    def _downloaded(self, storage_id: str, *, shared: bool, selector: Selector | None) -> Iterator[Path]:
        if not shared:
            with tempfile.TemporaryDirectory(prefix="resolute-checkpoint-") as temporary:
                self._downloads.alone(storage_id, Path(temporary), selector)
                yield Path(temporary)
            return
        is_local_chief = self._dist.local_rank == 0
        made = together_local(
            self._dist, lambda: tempfile.mkdtemp(prefix="resolute-checkpoint-") if is_local_chief else ""
        )
        directory = Path(made[0])
        try:
            self._downloads.shared(storage_id, directory, selector)
            yield directory
            # The files stay until the last process of this machine is done with them.
            self._dist.gather_local(None)
        finally:
            if is_local_chief:
                shutil.rmtree(directory, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a checkpoint is written."""

    directory: Path
    in_store: bool


class DummyCheckpointContext(CheckpointContext):
    """Checkpoints off cluster: directories in a store, with nobody to register them.

    Args:
        dist: The other processes.
        store: Where files go.
    """

    def __init__(self, dist: DistributedContext, store: CheckpointStore) -> None:
        super().__init__(dist, store=store, registry=LocalRegistry(store))
