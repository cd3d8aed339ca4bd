"""Ordered entries, with a cost of insertion that does not grow with their number.

The library sortedcontainers has such a list, also in plain Python, but it has no types, and its last release
was in 2021.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple

_BLOCK = 2048
"""Most entries of one block: an insertion moves half of one, and a place is counted over all blocks."""


class RungEntry(NamedTuple):
    """A trial on a rung. Entries compare by rank, the smaller the better.

    Attributes:
        metric: Metric of the trial; smaller is better.
        order: Tie-breaker for equal metrics, unique on its rung.
        trial_key: The trial.
    """

    metric: float
    order: int
    trial_key: str


class OrderedEntries:
    """The ordered entries of a rung, in blocks: an insertion into one list of 100 000 would move half of it.

    Args:
        entries: The initial entries, in order.
    """

    def __init__(self, entries: Iterable[RungEntry] = ()) -> None:
        waiting = iter(entries)
        self._blocks: list[list[RungEntry]] = []
        while block := list(islice(waiting, _BLOCK // 2)):
            self._blocks.append(block)
        self._count = sum(map(len, self._blocks))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[RungEntry]:
        return chain.from_iterable(self._blocks)

    def __getitem__(self, place: int) -> RungEntry:
        for block in self._blocks:
            if place < len(block):
                return block[place]
            place -= len(block)
        raise IndexError(place)

    def add(self, entry: RungEntry) -> None:
        """Inserts an entry in order."""
        self._count += 1
        if not self._blocks:
            self._blocks.append([entry])
            return
        number = min(self._block_of(entry), len(self._blocks) - 1)
        block = self._blocks[number]
        insort(block, entry)
        if len(block) > _BLOCK:
            half = len(block) // 2
            self._blocks[number : number + 1] = [block[:half], block[half:]]

    def remove(self, entry: RungEntry) -> None:
        """Removes an entry that is in the list."""
        number = self._block_of(entry)
        block = self._blocks[number]
        del block[bisect_left(block, entry)]
        if not block:
            del self._blocks[number]
        self._count -= 1

    def place(self, entry: RungEntry) -> int:
        """Returns the index of an entry that is in the list."""
        number = self._block_of(entry)
        before = sum(map(len, self._blocks[:number]))
        return before + bisect_left(self._blocks[number], entry)

    def _block_of(self, entry: RungEntry) -> int:
        """Returns the index of the first block whose last entry does not precede an entry."""
        return bisect_left(self._blocks, entry, key=lambda block: block[-1])
