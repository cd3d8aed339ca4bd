"""The order of a data set as a function of seed and position, so that a resume can start at any batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import Any, Protocol

import torch
from torch.utils.data import BatchSampler, Dataset, Sampler, get_worker_info

from resolute.pytorch.backends.random_state import seed_all
from resolute.pytorch.data.generators import OwnGenerators
from resolute.pytorch.data.reading_watch import ReadingWatch

_GOLDEN = 0x9E3779B97F4A7C15
"""An odd constant that spreads consecutive numbers over 64 bits."""
_MASK = (1 << 63) - 1


def derived_seed(seed: int, *numbers: int) -> int:
    """Derives the seed of one of many random streams from a common seed."""
    mixed = seed
    for number in numbers:
        mixed = ((mixed ^ (number + 1)) * _GOLDEN + (mixed >> 17)) & _MASK
    return mixed


class EpochAwareSampler(Protocol):
    """A sampler whose order depends only on the number of the epoch: ours, torch's or the script's."""

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next pass."""


class SeededShuffleSampler(Sampler[int]):
    """Yields every index once per pass, in an order determined by seed and epoch.

    Args:
        source: The data set of the indices.
        seed: Equal seeds give equal orders.
    """

    def __init__(self, source: Sized, *, seed: int) -> None:
        self._source = source
        self._seed = seed
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next pass. Without it, the epoch grows by one with each pass."""
        self._epoch = epoch

    def __len__(self) -> int:
        return len(self._source)

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(derived_seed(self._seed, self._epoch))
        self._epoch += 1
        yield from torch.randperm(len(self), generator=generator).tolist()


class RepeatedEpochsBatchSampler(BatchSampler):
    """Yields the batches of consecutive epochs, from a given epoch on.

    Args:
        batch_sampler: Yields the batches of one epoch.
        order: Called with the number of the next epoch; None if all epochs have the same order.
        first: Number of the first epoch.
    """

    def __init__(
        self, batch_sampler: Iterable[list[Any]], order: EpochAwareSampler | None, *, first: int
    ) -> None:
        self._batches = batch_sampler
        self._order = order
        self._first = first

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[list[Any]]:
        epoch = self._first
        while len(self):
            if self._order is not None:
                self._order.set_epoch(epoch)
            yield from self._batches
            epoch += 1


class NumberedBatch(list[Any]):
    """The indices of a batch, with its number since the start of training."""

    number: int = 0


class NumberedBatchSampler(BatchSampler):
    """Yields the batches of another sampler with their numbers.

    Args:
        batch_sampler: The other sampler.
        first: Number of the first batch.
    """

    def __init__(self, batch_sampler: Iterable[list[Any]], *, first: int) -> None:
        self._batches = batch_sampler
        self._first = first

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[list[Any]]:
        for number, indices in enumerate(self._batches, self._first):
            batch = NumberedBatch(indices)
            batch.number = number
            yield batch


class SeededDataset(Dataset[Any]):
    """A data set whose random numbers, in workers of a loader, depend only on the number of the batch.

    A worker lives as long as its loader, so its random numbers would depend on the loader's first batch. The
    rule also holds for generators of the data set itself and of its collate function. All attributes are
    those of the inner data set.

    Args:
        dataset: The inner data set.
        collate: The function that makes a batch of records.
        seed: Equal seeds give equal random numbers.
    """

    def __init__(self, dataset: Dataset[Any], collate: object, *, seed: int) -> None:
        self.__dict__["_inner"] = dataset
        self.__dict__["_collate"] = collate
        self.__dict__["_seed"] = seed
        self.__dict__["_generators"] = None
        self.__dict__["_watch"] = None

    def __getitem__(self, index: Any) -> Any:
        return self.__dict__["_inner"][index]

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        inner = self.__dict__["_inner"]
        if self.__dict__["_generators"] is None:  # in a worker, which has a copy of the data set
            generators = OwnGenerators((inner, self.__dict__["_collate"]))
            self.__dict__.update(_generators=generators, _watch=ReadingWatch(inner, generators))
        if isinstance(indices, NumberedBatch) and get_worker_info() is not None:
            self._seed_all(derived_seed(self.__dict__["_seed"], indices.number))
        with self.__dict__["_watch"].reading():
            whole = getattr(inner, "__getitems__", None)
            if whole is not None:
                items: list[Any] = whole(list(indices))
                return items
            return [inner[index] for index in indices]

    def __len__(self) -> int:
        return len(self.__dict__["_inner"])

    def __getattr__(self, name: str) -> Any:
        if name in {"_inner", "_collate", "_seed", "_generators", "_watch"} or name.startswith("__"):
            raise AttributeError(name)  # while it is being unpickled there is no inner data set yet
        return getattr(self.__dict__["_inner"], name)

    def _seed_all(self, seed: int) -> None:
        seed_all(seed)
        self.__dict__["_generators"].seed(seed)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["_inner"], name, value)
