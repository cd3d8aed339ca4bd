"""Uploads checkpoints from directories of the ranks: by one rank, or in shards by all."""

from __future__ import annotations

import contextlib
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resolute.core.checkpoint.collective_steps import run_on_all_ranks
from resolute.core.checkpoint.files.manifest import (
    METADATA_FILE,
    FileEntry,
    Selector,
    bytes_on_disk,
    describe_files,
    list_directory,
    metadata_text,
    selected,
    sync_directories,
    write_metadata,
)
from resolute.core.checkpoint.files.progress_log import ProgressFactory, log_progress
from resolute.core.checkpoint.files.protection import protect
from resolute.core.checkpoint.registry import CheckpointRegistry
from resolute.core.checkpoint.shards import (
    DirectoryId,
    assign_uploads,
    merge_resources,
    merged_metadata,
    uploading_ranks,
)
from resolute.core.checkpoint.stores.base import CheckpointStore
from resolute.core.distributed import DistributedContext

_LEAST_BYTES_IN_PLACE = 1024 * 1024
"""What must be free for the first checkpoint that a run writes in place, whose size is not known."""


@dataclass(frozen=True, slots=True)
class _Contribution:
    """The files and metadata that one rank adds to a checkpoint."""

    directory: DirectoryId | None
    selective: bool
    resources: Mapping[str, int]
    metadata: Mapping[str, Any] | None


class Uploader:
    """Uploads checkpoints.

    Args:
        dist: The other processes.
        store: The store of the files.
        registry: The registry that commits checkpoints.
        flush: Waits until this process's reports have arrived, so that no checkpoint is ahead of its metrics.
        committed: Called on the chief after each checkpoint.
        watch: Creates the progress for bytes that are hashed in place.
    """

    def __init__(
        self,
        dist: DistributedContext,
        *,
        store: CheckpointStore,
        registry: CheckpointRegistry,
        flush: Callable[[], None],
        committed: Callable[[], None],
        watch: ProgressFactory = log_progress,
    ) -> None:
        self._dist = dist
        self.store = store
        self.registry = registry
        self.flush = flush
        self._committed = committed
        self._watch = watch
        self._bytes_in_place = 0

    def begin_in_place(self) -> str:
        """Begins a checkpoint once there is room for one as large as the last that was written in place.

        The size of the first is not known: it only waits while the disk is full.

        A script that runs out of room while it writes into the store fails; one that waits does not.
        """
        self.store.await_room(max(self._bytes_in_place, _LEAST_BYTES_IN_PLACE))
        return self.begin()

    def begin(self) -> str:
        """Chooses the identifier of a checkpoint and announces it."""
        checkpoint_id = str(uuid.uuid4())
        self.registry.begin(checkpoint_id)
        return checkpoint_id

    def alone(self, source: Path, metadata: Mapping[str, Any] | None, selector: Selector | None) -> str:
        """Writes a checkpoint from a directory of this process; returns its identifier."""
        self.registry.prepare(metadata)
        metadata_text(metadata or {})
        if not source.is_dir():
            raise FileNotFoundError(f"there is no directory {source}")
        checkpoint_id = self.begin()
        with self.abort_on_error(checkpoint_id):
            self.write_and_commit(checkpoint_id, source, metadata, selector)
        return checkpoint_id

    def write_and_commit(
        self,
        checkpoint_id: str,
        source: Path,
        metadata: Mapping[str, Any] | None,
        selector: Selector | None = None,
    ) -> None:
        """Commits what is in a directory of this process, and changes nothing there."""
        paths = selected(source, list_directory(source), selector)
        files = self.store.write(checkpoint_id, source, paths) if paths else []
        if METADATA_FILE not in paths:
            files = [*files, *self._write_metadata(checkpoint_id, metadata or {})]
        self.finish(checkpoint_id, files, metadata)

    def commit_in_place(
        self, checkpoint_id: str, directory: Path, metadata: Mapping[str, Any] | None
    ) -> None:
        """Commits what was written directly into the store."""
        write_metadata(directory, dict(metadata or {}))
        sizes = list_directory(directory)
        paths = list(sizes)
        progress = self._watch(f"checkpoint {checkpoint_id} is summed up", sum(sizes.values()))
        files = describe_files(directory, paths, progress=progress)
        sync_directories(directory, paths)
        protect(directory, paths)
        self._bytes_in_place = bytes_on_disk(directory, paths)
        self.finish(checkpoint_id, files, metadata)

    def finish(
        self, checkpoint_id: str, files: Sequence[FileEntry], metadata: Mapping[str, Any] | None
    ) -> None:
        """Commits a checkpoint, after the reports before it."""
        prepared = self.registry.prepare(metadata)
        self.flush()
        self.registry.commit(checkpoint_id, files=files, metadata=prepared)
        self._committed()

    def abort_on_error(self, checkpoint_id: str) -> AbortOnError:
        """Returns a context that aborts a begun checkpoint if its block fails."""
        return AbortOnError(self.registry, checkpoint_id)

    def shards(
        self,
        source: Path | None,
        metadata: Mapping[str, Any] | None,
        selector: Selector | None,
        *,
        checkpoint_id: str = "",
    ) -> str:
        """Writes a checkpoint from the files of all ranks.

        Args:
            source: Directory of this rank; None if it has no files.
            metadata: Metadata of this rank.
            selector: Says of each path whether it is wanted.
            checkpoint_id: A checkpoint that was begun already; empty to begin one.

        Returns:
            Its identifier, on all ranks.
        """
        contributions = run_on_all_ranks(
            self._dist, lambda: _contribution(self._dist, source, metadata, selector)
        )
        uploaders = uploading_ranks(
            [contribution.directory for contribution in contributions],
            [contribution.selective for contribution in contributions],
        )
        if not uploaders:
            raise RuntimeError(
                "cannot call CheckpointContext.upload(ckpt_dir=None, shard=True) on all ranks: "
                "at least one must have a directory"
            )
        merged = merged_metadata([contribution.metadata for contribution in contributions])
        shares = self._assign_files(source, contributions, uploaders)
        if not checkpoint_id:
            checkpoint_id = self._begin_on_all_ranks(merged)
        own = any(METADATA_FILE in share for share in shares)
        writes_metadata = not own and self._dist.rank == uploaders[0]
        self._write_shards(
            checkpoint_id, source, merged, share=shares[self._dist.rank], writes_metadata=writes_metadata
        )
        return checkpoint_id

    def _assign_files(
        self, source: Path | None, contributions: Sequence[_Contribution], uploaders: Sequence[int]
    ) -> list[list[str]]:
        """Decides which paths each rank uploads; files that several have are compared by their digests."""
        resources = [
            contribution.resources if rank in uploaders else {}
            for rank, contribution in enumerate(contributions)
        ]
        _, conflicts = merge_resources(resources)
        mine = resources[self._dist.rank]
        conflicting = [path for path in conflicts if path in mine]
        digests = run_on_all_ranks(
            self._dist,
            lambda: (
                {entry.path: entry.digest for entry in describe_files(source, conflicting)} if source else {}
            ),
        )
        return assign_uploads(resources, digests)

    def _begin_on_all_ranks(self, metadata: Mapping[str, Any]) -> str:
        def begin() -> str:
            if self._dist.rank:
                return ""
            self.registry.prepare(metadata)
            return self.begin()

        return run_on_all_ranks(self._dist, begin)[0]

    def _write_shards(
        self,
        checkpoint_id: str,
        source: Path | None,
        metadata: Mapping[str, Any],
        *,
        share: Sequence[str],
        writes_metadata: bool,
    ) -> None:
        def write() -> list[FileEntry]:
            if source is None:
                return []
            files = self.store.write(checkpoint_id, source, share) if share else []
            if writes_metadata:
                files = [*files, *self._write_metadata(checkpoint_id, metadata)]
            self.flush()
            return files

        is_chief = self._dist.rank == 0
        with self.abort_on_error(checkpoint_id) if is_chief else contextlib.nullcontext():
            files = [entry for share in run_on_all_ranks(self._dist, write) for entry in share]
            run_on_all_ranks(
                self._dist, lambda: self.finish(checkpoint_id, files, metadata) if is_chief else None
            )

    def _write_metadata(self, checkpoint_id: str, metadata: Mapping[str, Any]) -> list[FileEntry]:
        """Sends the metadata as a file of its own."""
        with tempfile.TemporaryDirectory(prefix="resolute-metadata-") as directory:
            write_metadata(Path(directory), dict(metadata))
            return self.store.write(checkpoint_id, Path(directory), [METADATA_FILE])


class AbortOnError:
    """Aborts a begun checkpoint if the block fails."""

    def __init__(self, registry: CheckpointRegistry, checkpoint_id: str) -> None:
        self._registry = registry
        self._checkpoint_id = checkpoint_id

    def __enter__(self) -> None:
        """Nothing yet."""

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is not None:
            self._registry.abort(self._checkpoint_id)


def _contribution(
    dist: DistributedContext,
    source: Path | None,
    metadata: Mapping[str, Any] | None,
    selector: Selector | None,
) -> _Contribution:
    if source is None:
        if selector is not None:
            raise RuntimeError(
                "cannot call CheckpointContext.upload() with a selector but without a ckpt_dir"
            )
        return _Contribution(None, selective=False, resources={}, metadata=metadata)
    resources = list_directory(source)
    status = source.stat()
    # The same numbers on another machine are another directory.
    directory = ((dist.cross_rank << 64) | status.st_dev, status.st_ino)
    wanted = selected(source, resources, selector)
    return _Contribution(
        directory,
        selective=selector is not None,
        resources={path: resources[path] for path in wanted},
        metadata=metadata,
    )
