"""A store with a cache of downloaded files on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import final

from resolute.core.checkpoint.files.manifest import FileEntry
from resolute.core.checkpoint.stores.base import CheckpointStore
from resolute.transfer.cache import FileCache

_THREADS = 4


@final
class CachedStore:
    """Reads files from the machine's cache, and the others from the store, for all processes of the machine.

    Args:
        store: The store.
        cache: The machine's cache.
    """

    def __init__(self, store: CheckpointStore, cache: FileCache) -> None:
        self._store = store
        self._cache = cache

    def in_place(self, checkpoint_id: str) -> Path | None:
        """As the store."""
        return self._store.in_place(checkpoint_id)

    def write(self, checkpoint_id: str, source: Path, paths: Iterable[str]) -> list[FileEntry]:
        """As the store: only what is read is kept."""
        return self._store.write(checkpoint_id, source, paths)

    def list(self, checkpoint_id: str) -> dict[str, int]:
        """As the store."""
        return self._store.list(checkpoint_id)

    def await_room(self, size: int) -> None:
        """As the store."""
        self._store.await_room(size)

    def read(
        self, checkpoint_id: str, target: Path, paths: Iterable[str], *, expected: Sequence[FileEntry]
    ) -> None:
        """Copies files out, each of which is compared with what was committed.

        Several processes that want one checkpoint take turns: the first fetches it, the others find it here.

        Raises:
            CheckpointNotFound: A file is not there.
            DataLossError: Files are not what was committed; it names each.
            UnavailableError: The store was away for longer than the outage timeout.
        """
        wanted = list(paths)
        entries = {entry.path: entry for entry in expected if entry.digest}
        known = [entries[path] for path in wanted if path in entries]
        if sum(entry.size for entry in known) > self._cache.limit:
            # Others would find little of it.
            self._store.read(checkpoint_id, target, wanted, expected=expected)
            return
        with self._cache.fetch_lock(checkpoint_id):
            cached = self._take(known, target)
            rest = [path for path in wanted if path not in cached]
            self._store.read(checkpoint_id, target, rest, expected=expected)
            fetched = (entries[path] for path in rest if path in entries)
            self._cache.keep([(entry.digest, target / entry.path) for entry in fetched])

    def delete(self, checkpoint_id: str) -> None:
        """As the store; what is kept makes room when room is needed."""
        self._store.delete(checkpoint_id)

    def _take(self, entries: Sequence[FileEntry], target: Path) -> set[str]:
        for directory in {(target / entry.path).parent for entry in entries}:
            directory.mkdir(parents=True, exist_ok=True)

        def take(entry: FileEntry) -> bool:
            return self._cache.take(entry.digest, target / entry.path)

        with ThreadPoolExecutor(_THREADS, thread_name_prefix="resolute-cache") as pool:
            taken = pool.map(take, entries)
            return {entry.path for entry, held in zip(entries, taken, strict=True) if held}
