"""Divides a list into batches that fit into one request each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

_BYTES = 2 * 1024 * 1024
_T = TypeVar("_T")


def batches(
    items: Iterable[_T], *, most: int, size: Callable[[_T], int] = lambda _item: 0
) -> Iterator[list[_T]]:
    """Puts things together, in their order.

    Args:
        items: The things.
        most: How many a batch has at most.
        size: About how many bytes one takes; a batch has 2 MiB at most, or one thing.
    """
    batch: list[_T] = []
    total = 0
    for item in items:
        bytes_ = size(item)
        if batch and (len(batch) >= most or total + bytes_ > _BYTES):
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += bytes_
    if batch:
        yield batch
