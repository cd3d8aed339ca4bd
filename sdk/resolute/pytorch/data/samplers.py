"""Samplers that make a data set reproducible: shuffle, repeat, shard, batch, skip, in this order."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sized
from typing import Any, cast

import numpy as np
from torch.utils.data import BatchSampler, Sampler


def _length(sampler: object) -> int:
    return len(cast("Sized", sampler))


class RepeatSampler(Sampler[Any]):
    """Repeats another sampler without end. Its length is that of one pass.

    Args:
        sampler: The other sampler.
    """

    def __init__(self, sampler: Iterable[Any]) -> None:
        self._sampler = sampler

    def __len__(self) -> int:
        return _length(self._sampler)

    def __iter__(self) -> Iterator[Any]:
        yield from _passes(self._sampler)


class RepeatBatchSampler(BatchSampler):
    """Repeats the batches of another sampler without end. Its length is that of one pass.

    Args:
        batch_sampler: The other sampler.
    """

    def __init__(self, batch_sampler: Iterable[list[Any]]) -> None:
        self.batch_sampler = batch_sampler

    def __len__(self) -> int:
        return _length(self.batch_sampler)

    def __iter__(self) -> Iterator[list[Any]]:
        yield from _passes(self.batch_sampler)


class DistributedSampler(Sampler[Any]):
    """Yields one rank's share: every ``num_workers``-th item, beginning at ``rank``.

    Args:
        sampler: Yields the items of all ranks.
        num_workers: Number of ranks.
        rank: This rank.
    """

    def __init__(self, sampler: Iterable[Any], num_workers: int, rank: int) -> None:
        self._sampler = sampler
        self._num_workers = num_workers
        self._rank = rank

    def __len__(self) -> int:
        return _share(_length(self._sampler), self._num_workers, self._rank)

    def __iter__(self) -> Iterator[Any]:
        yield from itertools.islice(self._sampler, self._rank, None, self._num_workers)


class DistributedBatchSampler(BatchSampler):
    """Yields one rank's share: every ``num_workers``-th batch, beginning at ``rank``.

    Args:
        batch_sampler: Yields the batches of all ranks.
        num_workers: Number of ranks.
        rank: This rank.

    Raises:
        ValueError: The rank is not below the number of ranks.
    """

    def __init__(self, batch_sampler: Iterable[list[Any]], num_workers: int, rank: int) -> None:
        if num_workers < 1:
            raise ValueError(f"num_workers is {num_workers}; the number of ranks, at least 1, was expected")
        if not 0 <= rank < num_workers:
            raise ValueError(f"rank is {rank}; a number from 0 to {num_workers - 1} was expected")
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.rank = rank

    def __len__(self) -> int:
        return _share(_length(self.batch_sampler), self.num_workers, self.rank)

    def __iter__(self) -> Iterator[list[Any]]:
        yield from itertools.islice(self.batch_sampler, self.rank, None, self.num_workers)


class SkipSampler(Sampler[Any]):
    """Skips the first items of another sampler. The length stays that of the other sampler.

    Args:
        sampler: The other sampler. It must repeat if training continues after the first pass.
        skip: Number of items to skip.
    """

    def __init__(self, sampler: Iterable[Any], skip: int) -> None:
        self._sampler = sampler
        self._skip = skip

    def __len__(self) -> int:
        return _length(self._sampler)

    def __iter__(self) -> Iterator[Any]:
        yield from itertools.islice(self._sampler, self._skip, None)


class SkipBatchSampler(BatchSampler):
    """Skips the first batches of another sampler. The length stays that of the other sampler.

    Args:
        batch_sampler: The other sampler. It must repeat if training continues after the first pass.
        skip: Number of batches to skip.
    """

    def __init__(self, batch_sampler: Iterable[list[Any]], skip: int) -> None:
        self.batch_sampler = batch_sampler
        self.skip = skip

    def __len__(self) -> int:
        return _length(self.batch_sampler)

    def __iter__(self) -> Iterator[list[Any]]:
        yield from itertools.islice(self.batch_sampler, self.skip, None)


class ReproducibleShuffleSampler(Sampler[Any]):
    """Shuffles the items of another sampler. The seed determines the order of each pass.

    Args:
        sampler: The other sampler, which must be finite.
        seed: Equal seeds give equal orders.
    """

    def __init__(self, sampler: Iterable[Any], seed: int) -> None:
        self._sampler = sampler
        self._random = np.random.RandomState(seed)

    def __len__(self) -> int:
        return _length(self._sampler)

    def __iter__(self) -> Iterator[Any]:
        yield from _shuffled(self._sampler, self._random)


class ReproducibleShuffleBatchSampler(BatchSampler):
    """Shuffles the batches of another sampler. The seed determines the order of each pass.

    Args:
        batch_sampler: The other sampler, which must be finite.
        seed: Equal seeds give equal orders.
    """

    def __init__(self, batch_sampler: Iterable[list[Any]], seed: int) -> None:
        self.batch_sampler = batch_sampler
        self._random = np.random.RandomState(seed)

    def __len__(self) -> int:
        return _length(self.batch_sampler)

    def __iter__(self) -> Iterator[list[Any]]:
        yield from _shuffled(self.batch_sampler, self._random)


def _passes(sampler: Iterable[Any]) -> Iterator[Any]:
    """Iterates without end; over nothing it ends, where an endless search for an item would hang."""
    while True:
        empty = True
        for item in sampler:
            empty = False
            yield item
        if empty:
            return


def _share(length: int, ranks: int, rank: int) -> int:
    """How many of ``length`` items a rank gets: the first ranks take those that are left over."""
    return length // ranks + (length % ranks > rank)


def _shuffled(sampler: Iterable[Any], random: np.random.RandomState) -> list[Any]:
    items = list(sampler)
    # Positions are shuffled, not the items: numpy would look into items that are lists themselves.
    return [items[position] for position in random.permutation(len(items))]
