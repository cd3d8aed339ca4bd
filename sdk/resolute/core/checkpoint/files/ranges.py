"""Large objects by several connections, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, wait
from functools import partial

MAX_PARALLEL_RANGES = 4
"""Ranges of one object that are fetched, or wait for their turn, at the same time."""
MAX_PARALLEL_LARGE_FILES = 2
"""Objects that come by ranges at the same time: each keeps some of them in memory until it is their turn."""
_LARGE_BYTES = 64 << 20
_RANGE_BYTES = 16 << 20
_BLOCK_BYTES = 1 << 18
"""Larger writes make Linux (6.18, ext4) use large folios: 1 GB took 3.2 s of CPU instead of 0.5 s."""
_Range = bytes | bytearray


def is_large(size: int) -> bool:
    """Whether an object of so many bytes comes by several connections."""
    return size >= _LARGE_BYTES


def in_ranges(
    size: int,
    fetch: Callable[[int, int], _Range],
    *,
    submit: Callable[[Callable[[], _Range]], Future[_Range]],
) -> Generator[memoryview, None, None]:
    """Gives an object in order, in blocks to be written; what comes early waits for its turn in memory.

    Args:
        size: Bytes of the object.
        fetch: Gets a range, by its first byte and its length.
        submit: Has a range fetched by another thread.
    """
    waiting: deque[Future[_Range]] = deque()
    try:
        for start in range(0, size, _RANGE_BYTES):
            waiting.append(submit(partial(fetch, start, min(_RANGE_BYTES, size - start))))
            if len(waiting) == MAX_PARALLEL_RANGES:
                yield from _blocks(waiting.popleft())
        while waiting:
            yield from _blocks(waiting.popleft())
    finally:
        wait([future for future in waiting if not future.cancel()])


def _blocks(fetched: Future[_Range]) -> Iterator[memoryview]:
    view = memoryview(fetched.result())
    for start in range(0, len(view), _BLOCK_BYTES):
        yield view[start : start + _BLOCK_BYTES]
