"""Writes and reads checkpoints: directories of files with metadata."""

from __future__ import annotations

import contextlib
import copy
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from resolute.core.checkpoint.background_worker import BackgroundWorker
from resolute.core.checkpoint.collective_steps import run_on_all_ranks, run_on_local_ranks
from resolute.core.checkpoint.downloads import Downloader, DownloadMode
from resolute.core.checkpoint.files.manifest import (
    Selector,
    copy_files,
    list_directory,
    selected,
)
from resolute.core.checkpoint.files.progress_log import ProgressFactory, log_progress
from resolute.core.checkpoint.files.protection import (
    check_closed,
    directory_to_write,
    own_files,
    take_over,
)
from resolute.core.checkpoint.files.view import view_of
from resolute.core.checkpoint.registry import CheckpointRegistry, LocalRegistry
from resolute.core.checkpoint.shards import merged_metadata
from resolute.core.checkpoint.stores.base import CheckpointStore, RecordKeepingStore
from resolute.core.checkpoint.uploads import Uploader
from resolute.core.distributed import DistributedContext
from resolute.transfer.cache import FileCache

if TYPE_CHECKING:
    from typing_extensions import Self

_log = logging.getLogger("resolute.core")


def _do_nothing() -> None:
    """Where nothing has to be done."""


class CheckpointContext:
    """Writes and reads checkpoints. Get it as ``Context.checkpoint``.

    A checkpoint becomes visible once all its files are stored and all earlier reports have arrived. An
    interrupted one is never restored.

    Examples:
        >>> from resolute import core
        >>> with core.init(checkpoint_storage="checkpoint-example") as context:
        ...     with context.checkpoint.store_path({"steps_completed": 10}) as (path, storage_id):
        ...         _ = (path / "model.txt").write_text("weights")
        ...     with context.checkpoint.restore_path(storage_id) as path:
        ...         print((path / "model.txt").read_text())
        weights
    """

    def __init__(
        self,
        dist: DistributedContext,
        *,
        store: CheckpointStore,
        registry: CheckpointRegistry,
        flush: Callable[[], None] = _do_nothing,
        committed: Callable[[], None] = _do_nothing,
        watch: ProgressFactory = log_progress,
    ) -> None:
        self._dist = dist
        self._registry = registry
        self._store = store
        self._uploads = Uploader(
            dist, store=store, registry=registry, flush=flush, committed=committed, watch=watch
        )
        self._downloads = Downloader(dist, registry=registry, watch=watch)
        self._background = BackgroundWorker()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leaves nothing open: checkpoints end by themselves, or with the ``Context``."""

    def upload(
        self,
        ckpt_dir: str | os.PathLike[str] | None,
        metadata: Mapping[str, Any] | None = None,
        *,
        shard: bool = False,
        selector: Selector | None = None,
        background: bool = False,
    ) -> str:
        """Makes a checkpoint of a directory.

        Args:
            ckpt_dir: The directory; nothing in it is changed. None on ranks without files;
                this needs ``shard``.
            metadata: JSON-like data by name; on cluster ``steps_completed`` must be in it.
            shard: Whether every rank calls, each with a part of the checkpoint. Ranks that name the same
                directory upload it once; equal files of one name too.
            selector: Says of each path whether it belongs to the checkpoint; directories end in a slash.
            background: Whether to return as soon as the files are copied on local disk; see ``store_path``.

        Returns:
            The identifier of the checkpoint.

        Raises:
            RuntimeError: A worker calls without ``shard``; there is no directory; or ranks have different
                files of one name, or different metadata.
            ValueError: ``steps_completed`` is missing; or shards of several ranks shall go in the background.
        """
        source = None if ckpt_dir is None else Path(ckpt_dir)
        self._check_background(background, shard=shard)
        self._background.wait()
        if background and source is not None:
            return self._upload_in_background(source, metadata, selector)
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
        self,
        metadata: Mapping[str, Any] | None = None,
        *,
        shard: bool = False,
        background: bool = False,
    ) -> Iterator[tuple[Path, str]]:
        """Returns a directory to write a checkpoint to; it becomes one when the block ends without an error.

        In the background the end of the block only hands the files over: they are on local disk, or on the
        shared file system, and are sent and committed while training goes on. One checkpoint is under way at
        a time: the next call of any method here, ``wait`` and the end of the context wait for it and raise
        what went wrong. A process that is killed before leaves no checkpoint.

        Args:
            metadata: JSON-like data by name; on cluster ``steps_completed`` must be in it.
            shard: Whether every rank enters, each to write a part of the checkpoint.
            background: Whether to send and commit in the background; not for shards of several ranks, whose
                commit takes all of them.

        Yields:
            The directory and the identifier of the checkpoint.

        Raises:
            RuntimeError: A worker calls without ``shard``; or ranks write different files of one name, or
                give different metadata.
            ValueError: ``steps_completed`` is missing; or shards of several ranks shall go in the background.
            FailedPreconditionError: A file of the directory is still open for writing as the block ends.
        """
        self._check_background(background, shard=shard)
        self._background.wait()
        if shard and not background:
            with self._store_shards(metadata) as entered:
                yield entered
            return
        self._check_chief("store_path")
        self._registry.prepare(metadata)
        with self._store_alone(metadata, background=background) as entered:
            yield entered

    def wait(self) -> None:
        """Waits until the checkpoint that is sent in the background is committed, if there is one.

        Raises:
            Exception: The error of sending or committing, if one of them failed.
        """
        self._background.wait()

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
            selector: Says of each path whether it is wanted. A shared download has every file that any of
                the processes selects.

        Raises:
            CheckpointNotFound: There is no such checkpoint.
            DataLossError: A file is not what was committed.
        """
        self._background.wait()
        with self._downloads.held(storage_id):
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
        """Returns a directory with the checked files of a checkpoint, to read from for the length of a block.

        Changes of the script to the directory do not change the checkpoint. If the store is a directory, the
        files are links to it where possible, and read-only.

        Args:
            storage_id: The checkpoint.
            download_mode: Who downloads when several processes of one machine call.
            selector: Says of each path whether it is wanted.

        Yields:
            The directory.

        Raises:
            CheckpointNotFound: There is no such checkpoint.
            DataLossError: A file is not what was committed.
        """
        self._background.wait()
        shared = DownloadMode(download_mode) is DownloadMode.LocalWorkersShareDownload
        with self._downloads.held(storage_id):
            directory = self._downloads.in_place(storage_id, shared=shared)
            if directory is not None:
                with view_of(directory, selector) as viewed:
                    yield viewed
                return
            with self._downloaded(storage_id, shared=shared, selector=selector) as downloaded:
                yield downloaded

    def get_metadata(self, storage_id: str) -> dict[str, Any]:
        """Returns the metadata of a checkpoint.

        Raises:
            CheckpointNotFound: There is no such checkpoint.
        """
        self._background.wait()
        return self._registry.metadata(storage_id)

    def delete(self, storage_id: str) -> None:
        """Removes a checkpoint, files first. Nothing happens if it is gone already."""
        self._background.wait()
        self._registry.delete(storage_id)

    def _check_background(self, background: bool, *, shard: bool) -> None:
        if background and shard and self._dist.size > 1:
            raise ValueError(
                f"a checkpoint of {self._dist.size} ranks cannot be written in the background: its commit "
                "takes all of them; leave background=True away, or write it on the chief without shard=True"
            )

    def _check_chief(self, method: str) -> None:
        if self._dist.rank:
            raise RuntimeError(
                f"cannot call CheckpointContext.{method}(shard=False) from non-chief worker of rank "
                f"{self._dist.rank}: only the chief, rank 0, may; with shard=True all ranks do"
            )

    @contextlib.contextmanager
    def _store_alone(
        self, metadata: Mapping[str, Any] | None, *, background: bool
    ) -> Iterator[tuple[Path, str]]:
        checkpoint_id = self._uploads.begin_in_place()
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._uploads.abort_on_error(checkpoint_id))
            place = stack.enter_context(self._place(checkpoint_id))
            yield place.directory, checkpoint_id
            check_closed(place.directory)
            directory = place.directory
            if place.in_store:
                own_files(directory)
                directory = take_over(directory)
            commit = self._uploads.commit_in_place if place.in_store else self._uploads.write_and_commit
            if not background:
                commit(checkpoint_id, directory, metadata)
                return
            # The script may continue to change what it has given.
            kept = copy.deepcopy(dict(metadata or {}))
            ending = stack.pop_all()

        def finish() -> None:
            with ending:
                commit(checkpoint_id, directory, kept)

        self._background.begin(finish)

    def _upload_in_background(
        self, source: Path, metadata: Mapping[str, Any] | None, selector: Selector | None
    ) -> str:
        self._check_chief("upload")
        self._registry.prepare(metadata)
        with self._store_alone(metadata, background=True) as (directory, checkpoint_id):
            copy_files(source, directory, selected(source, list_directory(source), selector))
        return checkpoint_id

    @contextlib.contextmanager
    def _store_shards(self, metadata: Mapping[str, Any] | None) -> Iterator[tuple[Path, str]]:
        is_chief = self._dist.rank == 0
        checkpoint_id = run_on_all_ranks(
            self._dist, lambda: self._uploads.begin_in_place() if is_chief else ""
        )[0]
        guard = self._uploads.abort_on_error(checkpoint_id) if is_chief else contextlib.nullcontext()
        with guard, self._place(checkpoint_id) as place:
            try:
                yield place.directory, checkpoint_id
                check_closed(place.directory)
            except Exception as failure:  # noqa: BLE001 - raised again, once the others know
                self._fail_on_all_ranks(failure)
            if place.in_store:
                self._commit_shards_in_place(checkpoint_id, place.directory, metadata)
            else:
                self._uploads.shards(place.directory, metadata, None, checkpoint_id=checkpoint_id)

    def _fail_on_all_ranks(self, failure: Exception) -> NoReturn:
        """Raises a failure of this rank, after telling the others, who would wait for it otherwise."""

        def fail() -> NoReturn:
            raise failure

        run_on_all_ranks(self._dist, fail)
        raise failure

    def _commit_shards_in_place(
        self, checkpoint_id: str, written: Path, metadata: Mapping[str, Any] | None
    ) -> None:
        def commit() -> None:
            if self._dist.rank == 0:
                own_files(written)
                self._uploads.commit_in_place(checkpoint_id, take_over(written), merged)

        def flush() -> Mapping[str, Any] | None:
            self._uploads.flush()
            return metadata

        merged = merged_metadata(run_on_all_ranks(self._dist, flush))
        run_on_all_ranks(self._dist, commit)

    @contextlib.contextmanager
    def _place(self, checkpoint_id: str) -> Iterator[_Place]:
        """Returns a directory to write to: that of the store, or one that is copied and removed."""
        directory = self._store.in_place(checkpoint_id)
        if directory is not None:
            yield _Place(directory_to_write(directory), in_store=True)
            return
        with tempfile.TemporaryDirectory(prefix="resolute-checkpoint-") as temporary:
            yield _Place(Path(temporary), in_store=False)

    @contextlib.contextmanager
    def _downloaded(self, storage_id: str, *, shared: bool, selector: Selector | None) -> Iterator[Path]:
        # Scripts that take the identifier from the directory's name find it.
        if not shared:
            with tempfile.TemporaryDirectory(prefix="resolute-checkpoint-") as temporary:
                directory = Path(temporary, storage_id)
                self._downloads.alone(storage_id, directory, selector)
                yield directory
            return
        is_local_chief = self._dist.local_rank == 0
        made = run_on_local_ranks(
            self._dist, lambda: tempfile.mkdtemp(prefix="resolute-checkpoint-") if is_local_chief else ""
        )
        directory = Path(made[0], storage_id)
        try:
            self._downloads.shared(storage_id, directory, selector)
            yield directory
            # The files stay until the last process of this machine is done with them.
            self._dist.gather_local(None)
        finally:
            if is_local_chief:
                shutil.rmtree(directory.parent, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _Place:
    """The directory to which a checkpoint is written."""

    directory: Path
    in_store: bool


class DummyCheckpointContext(CheckpointContext):
    """Checkpoints off cluster, in a store that keeps its own records of them.

    Args:
        dist: The other processes.
        store: The store of the files.
        cache: The machine's cache of downloaded files; None for no cache.

    Examples:
        >>> from resolute import core
        >>> with core.init(checkpoint_storage="dummy-example") as context:
        ...     with context.checkpoint.store_path({"steps_completed": 1}) as (path, storage_id):
        ...         _ = (path / "model.txt").write_text("weights")
        ...     isinstance(context.checkpoint, core.DummyCheckpointContext)
        True
    """

    def __init__(
        self, dist: DistributedContext, store: RecordKeepingStore, *, cache: FileCache | None = None
    ) -> None:
        super().__init__(dist, store=store, registry=LocalRegistry(store, cache=cache))
