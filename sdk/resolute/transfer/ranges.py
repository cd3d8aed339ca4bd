"""Downloads large files by several connections, in order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import final

from resolute.transfer.transport import BLOCK_BYTES, Sink

Fetch = Callable[[int, int, Sink], object]
"""Gets a range of a file: its first byte, its length, and what takes the bytes."""
_RANGES_AT_ONCE = 4
"""Of one file: this many are fetched, or wait in memory for their turn."""
_FILES_AT_ONCE = 2
_RANGE_BYTES = 8 << 20
_LARGE_BYTES = 32 << 20


def is_large(size: int) -> bool:
    """Whether so many bytes of a file are fetched by several connections."""
    return size >= _LARGE_BYTES


@final
class ParallelRanges:
    """Threads that fetch ranges of large files. Use it as a context manager.

    A range that arrives before its turn waits in memory, at most 64 MiB in all. Buffers are reused, which
    saves the cost of new pages.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(
            _RANGES_AT_ONCE * _FILES_AT_ONCE, thread_name_prefix="resolute-range"
        )
        self._files = threading.Semaphore(_FILES_AT_ONCE)

    def __enter__(self) -> ParallelRanges:
        """Starts no thread yet."""
        return self

    def __exit__(self, *failure: object) -> None:
        """Waits for the threads."""
        self._threads.shutdown(cancel_futures=True)

    def blocks(self, start: int, end: int, fetch: Fetch) -> Generator[memoryview, None, None]:
        """Returns a part of a file in order, in blocks that are good only until the next one is asked for.

        Args:
            start: The first byte.
            end: The byte after the last one.
            fetch: Gets a range, in another thread.
        """
        with self._files:
            free = deque(memoryview(bytearray(_RANGE_BYTES)) for _ in range(_RANGES_AT_ONCE))
            offsets = iter(range(start, end, _RANGE_BYTES))
            waiting: deque[tuple[memoryview, Future[int]]] = deque()
            try:
                while True:
                    while free and (offset := next(offsets, None)) is not None:
                        buffer, size = free.popleft(), min(_RANGE_BYTES, end - offset)
                        waiting.append((buffer, self._threads.submit(_fill, buffer, fetch, offset, size)))
                    if not waiting:
                        return
                    buffer, filled = waiting[0]
                    count = filled.result()
                    waiting.popleft()
                    for begin in range(0, count, BLOCK_BYTES):
                        yield buffer[begin : min(begin + BLOCK_BYTES, count)]
                    free.append(buffer)
            finally:
                wait([filled for _, filled in waiting if not filled.cancel()])


def _fill(buffer: memoryview, fetch: Fetch, offset: int, size: int) -> int:
    """Fetches a range into memory; returns its bytes, fewer where the file ends before."""
    count = 0

    def take(piece: bytes | memoryview) -> None:
        nonlocal count
        buffer[count : count + len(piece)] = piece
        count += len(piece)

    fetch(offset, size, take)
    return count
