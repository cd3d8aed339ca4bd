"""Large objects by several connections, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, wait
from functools import partial
from typing import TypeVar

AT_ONCE = 4
"""Ranges of one object that are fetched, or wait for their turn, at the same time."""
LARGE_AT_ONCE = 2
"""Objects that come by ranges at the same time: each keeps some of them in memory until it is their turn."""
_LARGE_BYTES = 64 << 20
_RANGE_BYTES = 16 << 20
_Piece = TypeVar("_Piece")


def is_large(size: int) -> bool:
    """Whether an object of so many bytes comes by several connections."""
    return size >= _LARGE_BYTES


def in_ranges(
    size: int,
    fetch: Callable[[int, int], _Piece],
    *,
    submit: Callable[[Callable[[], _Piece]], Future[_Piece]],
) -> Generator[_Piece, None, None]:
    """Gives an object in order; what comes early waits for its turn in memory.

    Args:
        size: Bytes of the object.
        fetch: Gets a range, by its first byte and its length.
        submit: Has a range fetched by another thread.
    """
    waiting: deque[Future[_Piece]] = deque()
    try:
        for start in range(0, size, _RANGE_BYTES):
            waiting.append(submit(partial(fetch, start, min(_RANGE_BYTES, size - start))))
            if len(waiting) == AT_ONCE:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        wait([future for future in waiting if not future.cancel()])
