"""Takes checkpoints from directories of the ranks to a store: alone, or with a share of every rank."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resolute.core.checkpoint.agreement import together
from resolute.core.checkpoint.logged import logged
from resolute.core.checkpoint.manifest import (
    METADATA_FILE,
    FileEntry,
    Selector,
    list_directory,
    measure,
    selected,
    sync_directories,
    write_metadata,
)
from resolute.core.checkpoint.registry import CheckpointRegistry
from resolute.core.checkpoint.stores import CheckpointStore
from resolute.core.distributed import DistributedContext
from resolute.core.resources import (
    DirectoryId,
    merge_resources,
    merged_metadata,
    ranks_that_upload,
    shares_to_upload,
)


@dataclass(frozen=True, slots=True)
class _Offer:
    """What one rank brings to a checkpoint."""

    directory: DirectoryId | None
    selective: bool
    resources: Mapping[str, int]
    metadata: Mapping[str, Any] | None


class Uploads:
    """Writes checkpoints.

    Args:
        dist: The other processes.
        store: Where files go.
        registry: Says what counts.
        flush: Waits until this process's reports have arrived, so that no checkpoint is ahead of its metrics.
        committed: Called on the chief after each checkpoint.
    """

    def __init__(
        self,
        dist: DistributedContext,
        *,
        store: CheckpointStore,
        registry: CheckpointRegistry,
        flush: Callable[[], None],
        committed: Callable[[], None],
    ) -> None:
        self._dist = dist
        self.store = store
        self.registry = registry
        self.flush = flush
        self._committed = committed

    def begin(self) -> str:
        """Chooses the identifier of a checkpoint and announces it."""
        checkpoint_id = str(uuid.uuid4())
        self.registry.begin(checkpoint_id)
        return checkpoint_id

    def alone(self, source: Path, metadata: Mapping[str, Any] | None, selector: Selector | None) -> str:
        """Writes a checkpoint from a directory of this process; returns its identifier."""
        self.registry.prepare(metadata)
        write_metadata(source, dict(metadata or {}))
        checkpoint_id = self.begin()
        with self.giving_up(checkpoint_id):
            self.copy_in(checkpoint_id, source, metadata, selector)
        return checkpoint_id

    def copy_in(
        self,
        checkpoint_id: str,
        source: Path,
        metadata: Mapping[str, Any] | None,
        selector: Selector | None = None,
    ) -> None:
        """Commits what lies in a directory of this process."""
        write_metadata(source, dict(metadata or {}))
        paths = selected(list_directory(source), selector)
        files = self.store.write(checkpoint_id, source, [*paths, METADATA_FILE])
        self.finish(checkpoint_id, files, metadata)

    def adopt(self, checkpoint_id: str, directory: Path, metadata: Mapping[str, Any] | None) -> None:
        """Commits what was written directly into the store."""
        write_metadata(directory, dict(metadata or {}))
        sizes = list_directory(directory)
        paths = list(sizes)
        progress = logged(f"checkpoint {checkpoint_id} is summed up", sum(sizes.values()))
        files = measure(directory, paths, progress=progress)
        sync_directories(directory, paths)
        self.finish(checkpoint_id, files, metadata)

    def finish(
        self, checkpoint_id: str, files: Sequence[FileEntry], metadata: Mapping[str, Any] | None
    ) -> None:
        """Makes a checkpoint count, after the reports before it."""
        prepared = self.registry.prepare(metadata)
        self.flush()
        self.registry.commit(checkpoint_id, files=files, metadata=prepared)
        self._committed()

    def giving_up(self, checkpoint_id: str) -> GivingUp:
        """Returns a context that aborts a begun checkpoint if its block fails."""
        return GivingUp(self.registry, checkpoint_id)

    def shards(
        self,
        source: Path | None,
        metadata: Mapping[str, Any] | None,
        selector: Selector | None,
        *,
        checkpoint_id: str = "",
    ) -> str:
        """Writes a checkpoint out of what every rank brings.

        Args:
            source: Directory of this rank; None if it brings nothing.
            metadata: Metadata of this rank.
            selector: Says of each path whether it is wanted.
            checkpoint_id: A checkpoint that was begun already; empty to begin one.

        Returns:
            Its identifier, on all ranks.
        """
        offers = together(self._dist, lambda: _offer(self._dist, source, metadata, selector))
        uploaders = ranks_that_upload(
            [offer.directory for offer in offers], [offer.selective for offer in offers]
        )
        if not uploaders:
            raise RuntimeError(
                "cannot call CheckpointContext.upload(ckpt_dir=None, shard=True) on all ranks: "
                "at least one must have a directory"
            )
        merged = merged_metadata([offer.metadata for offer in offers])
        shares = self._divide(source, offers, uploaders)
        if not checkpoint_id:
            checkpoint_id = self._begin_together(merged)
        self._write_together(
            checkpoint_id, source, merged, share=shares[self._dist.rank], writer=uploaders[0]
        )
        return checkpoint_id

    def _divide(
        self, source: Path | None, offers: Sequence[_Offer], uploaders: Sequence[int]
    ) -> list[list[str]]:
        """Decides which paths each rank uploads; files that several have are compared by their digests."""
        resources = [offer.resources if rank in uploaders else {} for rank, offer in enumerate(offers)]
        _, conflicts = merge_resources(resources)
        mine = resources[self._dist.rank]
        doubtful = [path for path in conflicts if path in mine]
        digests = together(
            self._dist,
            lambda: {entry.path: entry.digest for entry in measure(source, doubtful)} if source else {},
        )
        return shares_to_upload(resources, digests)

    def _begin_together(self, metadata: Mapping[str, Any]) -> str:
        def begin() -> str:
            if self._dist.rank:
                return ""
            self.registry.prepare(metadata)
            return self.begin()

        return together(self._dist, begin)[0]

    def _write_together(
        self,
        checkpoint_id: str,
        source: Path | None,
        metadata: Mapping[str, Any],
        *,
        share: Sequence[str],
        writer: int,
    ) -> None:
        def write() -> list[FileEntry]:
            if source is None:
                return []
            paths = list(share)
            if self._dist.rank == writer:
                write_metadata(source, metadata)
                paths.append(METADATA_FILE)
            files = self.store.write(checkpoint_id, source, paths) if paths else []
            self.flush()
            return files

        is_chief = self._dist.rank == 0
        with self.giving_up(checkpoint_id) if is_chief else contextlib.nullcontext():
            files = [entry for share in together(self._dist, write) for entry in share]
            together(self._dist, lambda: self.finish(checkpoint_id, files, metadata) if is_chief else None)


class GivingUp:
    """Aborts a begun checkpoint if the block fails."""

    def __init__(self, registry: CheckpointRegistry, checkpoint_id: str) -> None:
        self._registry = registry
        self._checkpoint_id = checkpoint_id

    def __enter__(self) -> None:
        """Nothing yet."""

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is not None:
            self._registry.abort(self._checkpoint_id)


def _offer(
    dist: DistributedContext,
    source: Path | None,
    metadata: Mapping[str, Any] | None,
    selector: Selector | None,
) -> _Offer:
    if source is None:
        if selector is not None:
            raise RuntimeError(
                "cannot call CheckpointContext.upload() with a selector but without a ckpt_dir"
            )
        return _Offer(None, selective=False, resources={}, metadata=metadata)
    resources = list_directory(source)
    status = source.stat()
    # The same numbers on another machine are another directory.
    directory = ((dist.cross_rank << 64) | status.st_dev, status.st_ino)
    wanted = selected(resources, selector)
    return _Offer(
        directory,
        selective=selector is not None,
        resources={path: resources[path] for path in wanted},
        metadata=metadata,
    )
