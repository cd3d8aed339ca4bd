"""Cuts files into chunks, and tells what of them a store would have already."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

_TABLE = np.random.default_rng(0).integers(0, 2**32, 256, dtype=np.uint32)
Cutter = Callable[[bytes], Iterable[bytes]]


def whole(data: bytes) -> Iterator[bytes]:
    """A file as it is."""
    yield data


def fixed(data: bytes, *, size: int) -> Iterator[bytes]:
    """Pieces of one size."""
    for start in range(0, len(data), size):
        yield data[start : start + size]


def by_content(data: bytes, *, size: int) -> Iterator[bytes]:
    """Pieces of about one size whose ends the content decides, so that they move with it."""
    candidates = np.flatnonzero(_rolling(data) < np.uint32(2**32 // size)) + 1
    start = 0
    while start < len(data):
        index = int(np.searchsorted(candidates, start + size // 4))
        found = int(candidates[index]) if index < len(candidates) else len(data)
        end = min(found, start + size * 4, len(data))
        yield data[start:end]
        start = end


def _rolling(data: bytes) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    """At each byte a number that depends on it and on the 31 before it."""
    sums = _TABLE[np.frombuffer(data, dtype=np.uint8)]
    reach = 1
    while reach < 32:
        longer = sums.copy()
        longer[reach:] += sums[:-reach] << np.uint32(reach)
        sums, reach = longer, reach * 2
    return sums


def cutters(sizes: Iterable[int]) -> dict[str, Cutter]:
    """Ways to cut, by names for people; the first one is that of the platform."""
    ways: dict[str, Cutter] = {"files": whole}
    for size in sizes:
        ways[f"fixed {size >> 10} KiB"] = partial(fixed, size=size)
        ways[f"by content {size >> 10} KiB"] = partial(by_content, size=size)
    return ways


@dataclass
class FileIndex:
    """What a store has that cuts files in one way."""

    cut: Cutter
    known: set[bytes] = field(default_factory=set)
    offered: int = 0
    reused: int = 0
    pieces: int = 0

    def take(self, folder: Path, *, first: bool) -> None:
        """Takes a checkpoint; the first one of a training does not count, there is nothing to reuse."""
        fresh: set[bytes] = set()
        for path in sorted(folder.iterdir()):
            for piece in self.cut(path.read_bytes()):
                digest = hashlib.blake2b(piece, digest_size=16).digest()
                fresh.add(digest)
                if not first:
                    self.pieces += 1
                    self.offered += len(piece)
                    self.reused += len(piece) if digest in self.known else 0
        self.known |= fresh

    @property
    def share(self) -> float:
        """Share of the bytes that need not be sent."""
        return self.reused / self.offered
