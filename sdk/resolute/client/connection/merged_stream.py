"""Merges several streams into one queue. A thread reads each stream."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Protocol, final

_JOIN_SECONDS = 5.0


class CancellableStream(Protocol):
    """A stream that another thread can cancel."""

    def __iter__(self) -> Iterator[Any]:
        """Yields what comes."""

    def cancel(self) -> None:
        """Ends the iteration."""


@final
class StreamEnded:
    """The item that follows the last item of a source.

    Args:
        source: The source.
        error: The error that interrupted the source; None if it ended normally.
    """

    def __init__(self, source: CancellableStream, error: Exception | None) -> None:
        self.source = source
        self.error = error


@final
class MergedStream:
    """Merges sources. As a context manager it ends their threads at the end of the block."""

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._threads: list[tuple[CancellableStream, threading.Thread]] = []

    def __enter__(self) -> MergedStream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for source, _ in self._threads:
            source.cancel()
        for _, thread in self._threads:
            # Ctrl-C in the midst of a start leaves a thread that cannot be joined; its source is cancelled.
            with suppress(RuntimeError):
                thread.join(_JOIN_SECONDS)

    def add(self, source: CancellableStream, *, name: str) -> None:
        """Begins to read a source.

        Args:
            source: What to read.
            name: Name of its thread.
        """
        # A daemon: whatever a broken network does, the command must be able to end.
        thread = threading.Thread(target=self._read, args=(source,), name=name, daemon=True)
        self._threads.append((source, thread))
        thread.start()

    def next(self, *, timeout: float) -> Any:
        """Returns the next item or the ``StreamEnded`` of a source; None after ``timeout`` seconds."""
        try:
            return self._items.get(timeout=timeout)
        except queue.Empty:
            return None

    def _read(self, source: CancellableStream) -> None:
        error: Exception | None = None
        try:
            for item in source:
                self._items.put(item)
        except Exception as failure:  # noqa: BLE001 - handed to the reader of the queue
            error = failure
        self._items.put(StreamEnded(source, error))
