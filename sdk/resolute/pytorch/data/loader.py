"""The data loader, and the wrappers that move and measure batches."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any, cast

import numpy as np
import torch
from torch.utils import data as torch_data

from resolute.pytorch.data import samplers
from resolute.pytorch.data.generators import OwnGenerators
from resolute.pytorch.data.ordering import (
    NumberedBatchSampler,
    RepeatedEpochsBatchSampler,
    SeededDataset,
    SeededShuffleSampler,
    derived_seed,
)
from resolute.pytorch.data.replay import DataOrder, ReplayedBatchSampler

TorchData = dict[str, torch.Tensor] | Sequence[torch.Tensor] | torch.Tensor
_log = logging.getLogger("resolute.pytorch")
_NUMERIC_KINDS = frozenset("fciub")
_unmoved: set[type] = set()
"""Types that were warned of."""


def adapt_batch_sampler(
    batch_sampler: Iterable[list[Any]],
    repeat: bool = False,
    skip: int = 0,
    num_replicas: int = 1,
    rank: int = 0,
) -> torch_data.BatchSampler:
    """Makes a batch sampler fit for distributed training that can resume.

    Args:
        batch_sampler: Yields the batches of one pass, of all ranks.
        repeat: Whether to begin again after each pass, as training does.
        skip: How many of this rank's batches to leave out.
        num_replicas: Number of ranks; each gets every ``num_replicas``-th batch.
        rank: This rank.

    Raises:
        ValueError: There is no such rank.

    Examples:
        >>> from resolute import pytorch
        >>> batches = [[0, 1], [2, 3], [4, 5], [6, 7]]
        >>> list(pytorch.adapt_batch_sampler(batches, num_replicas=2, rank=1))
        [[2, 3], [6, 7]]
    """
    adapted = batch_sampler
    if repeat:
        adapted = samplers.RepeatBatchSampler(adapted)
    if num_replicas > 1:
        adapted = samplers.DistributedBatchSampler(adapted, num_replicas, rank)
    if skip > 0:
        adapted = samplers.SkipBatchSampler(adapted, skip)
    return cast("torch_data.BatchSampler", adapted)


class DataLoader:
    """A ``torch.utils.data.DataLoader`` that is sharded over ranks and can start at any batch.

    It takes the arguments of torch's class. The trial's seed (or the ``generator``) determines the order of
    the records, and with ``num_workers`` also the random numbers of the data set. So a trial that is paused
    and resumed, or that crashes and restarts, sees the same batches as one without interruption.

    Raises:
        ValueError: The data set is an ``IterableDataset``, the batch size is missing, or arguments exclude
            each other.

    Examples:
        >>> from resolute import pytorch
        >>> loader = pytorch.DataLoader(list(range(10)), batch_size=4, shuffle=True)
        >>> len(loader)
        3
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the arguments of torch's
        self,
        dataset: torch_data.Dataset[Any],
        batch_size: int | None = 1,
        shuffle: bool = False,
        sampler: torch_data.Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: torch_data.Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: torch.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        **further: Any,
    ) -> None:
        _check_arguments(dataset, batch_size, shuffle, sampler, batch_sampler, drop_last)
        self.dataset = dataset
        self.batch_size = batch_size if batch_sampler is None else None
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.shuffle = shuffle or _is_plain_shuffle(sampler)
        self.num_workers = num_workers
        self.drop_last = drop_last
        self.generator = generator
        self._options = {
            "num_workers": num_workers,
            "collate_fn": collate_fn,
            "pin_memory": pin_memory,
            "timeout": timeout,
            "worker_init_fn": worker_init_fn,
            "multiprocessing_context": multiprocessing_context,
            "prefetch_factor": prefetch_factor,
            "persistent_workers": persistent_workers,
            **further,
        }
        self._own_loader: torch_data.DataLoader[Any] | None = None
        self._order = DataOrder()

    @property
    def order(self) -> DataOrder:
        """The order of the loader that ``get_data_loader`` created last, for checkpoints."""
        return self._order

    def get_data_loader(
        self,
        repeat: bool = False,
        skip: int = 0,
        num_replicas: int = 1,
        rank: int = 0,
        *,
        seed: int | None = None,
    ) -> torch_data.DataLoader[Any]:
        """Creates torch's loader for one rank.

        Args:
            repeat: Whether to begin again after each pass.
            skip: How many of this rank's batches to leave out.
            num_replicas: Number of ranks.
            rank: This rank.
            seed: Decides the order of a shuffle; default: the generator's, else that of torch in this
            process.
        """
        if seed is None or self.generator is not None:
            seed = (self.generator or torch.default_generator).initial_seed()
        dataset = self.dataset
        # Workers have copies of the data set, whose random numbers follow from the number of the batch.
        read_by = (dataset, self._options["collate_fn"])
        self._order = DataOrder(dataset=None if self.num_workers else OwnGenerators(read_by))
        batches = self._batches(repeat=repeat, skip=skip, num_replicas=num_replicas, rank=rank, seed=seed)
        if self.num_workers:
            batches = NumberedBatchSampler(batches, first=skip)
        dataset = SeededDataset(dataset, self._options["collate_fn"], seed=derived_seed(seed, rank))
        # A generator of its own: starting workers must not take from the random numbers of training.
        generator = torch.Generator().manual_seed(derived_seed(seed, rank, skip))
        return torch_data.DataLoader(
            dataset,
            batch_sampler=batches,
            generator=generator,
            **self._options,
        )

    def __iter__(self) -> Iterator[Any]:
        if self._own_loader is None:
            self._own_loader = self.get_data_loader()
        return iter(self._own_loader)

    def __len__(self) -> int:
        if self.batch_sampler is not None:
            return len(cast("Sized", self.batch_sampler))
        records = len(cast("Sized", self.dataset if self.sampler is None else self.sampler))
        size = cast("int", self.batch_size)
        return records // size if self.drop_last else -(-records // size)

    def _batches(
        self, *, repeat: bool, skip: int, num_replicas: int, rank: int, seed: int
    ) -> torch_data.BatchSampler:
        order, batches = self._one_pass(seed)
        follows_from_epoch = order is not None or (self.sampler is None and self.batch_sampler is None)
        if not follows_from_epoch:
            replayed = ReplayedBatchSampler(
                batches, dataset=self.dataset, seed=seed, repeat=repeat, num_replicas=num_replicas, rank=rank
            )
            self._order = dataclasses.replace(self._order, sampler=replayed)
            return adapt_batch_sampler(replayed, skip=skip, num_replicas=num_replicas, rank=rank)
        if not (repeat and len(self)):
            return adapt_batch_sampler(batches, repeat, skip, num_replicas, rank)
        # Any position is as near as any other: no epoch before it is gone through.
        epoch, before = divmod(skip * num_replicas, len(self))
        later: Iterable[list[Any]] = RepeatedEpochsBatchSampler(batches, order, first=epoch)
        if before:
            later = samplers.SkipBatchSampler(later, before)
        return samplers.DistributedBatchSampler(later, num_replicas, rank)

    def _one_pass(self, seed: int) -> tuple[SeededShuffleSampler | None, Iterable[list[Any]]]:
        if self.batch_sampler is not None:
            _set_generator(getattr(self.batch_sampler, "sampler", None), seed)
            return None, self.batch_sampler
        size = cast("int", self.batch_size)
        source = cast("Sized", self.dataset)
        if self.shuffle:
            order = SeededShuffleSampler(source, seed=seed)
            return order, torch_data.BatchSampler(order, size, self.drop_last)
        _set_generator(self.sampler, seed)
        sampler = torch_data.SequentialSampler(source) if self.sampler is None else self.sampler
        return None, torch_data.BatchSampler(cast("torch_data.Sampler[int]", sampler), size, self.drop_last)


def _check_arguments(
    dataset: object,
    batch_size: int | None,
    shuffle: bool,
    sampler: object,
    batch_sampler: object,
    drop_last: bool,
) -> None:
    if isinstance(dataset, torch_data.IterableDataset):
        raise ValueError(  # noqa: TRY004 - the documented class
            "resolute.pytorch.DataLoader cannot shard an IterableDataset nor begin in its middle; shard and "
            "skip "
            "in the data set, call context.experimental.disable_dataset_reproducibility_checks(), and "
            "return a "
            "torch.utils.data.DataLoader"
        )
    for name, given in (("sampler", sampler), ("batch_sampler", batch_sampler)):
        if isinstance(given, Iterator):
            raise ValueError(  # noqa: TRY004 - as the others
                f"{name} is a {type(given).__name__}, which ends after one pass: give a list, or an object "
                "whose __iter__ begins a new pass"
            )
    if sampler is not None and shuffle:
        raise ValueError("the arguments sampler and shuffle exclude each other")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError("the argument batch_sampler excludes batch_size, shuffle, sampler and drop_last")
        return
    if batch_size is None:
        raise ValueError("batch_size is None; give the records of a batch, or a batch_sampler")
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}; it must be at least 1")


def _is_plain_shuffle(sampler: object) -> bool:
    """Returns whether a sampler is equivalent to ``shuffle=True``."""
    return (
        type(sampler) is torch_data.RandomSampler
        and not sampler.replacement
        and sampler.generator is None
        and sampler.num_samples == len(sampler.data_source)
    )


def _set_generator(sampler: object, seed: int) -> None:
    """Gives a random sampler of torch a generator whose numbers do not depend on the time of the call."""
    if isinstance(sampler, torch_data.Sampler) and getattr(sampler, "generator", seed) is None:
        sampler.generator = torch.Generator().manual_seed(seed)  # type: ignore[attr-defined]


def to_device(data: Any, device: torch.device, warned_types: set[type] | None = None) -> Any:
    """Moves a batch, however nested, to a device.

    Args:
        data: Tensors and arrays of numbers in dicts, lists and tuples. Whatever has a method ``to`` is moved
            by it; anything else stays as it is, with one warning for each type.
        device: Where to.
        warned_types: Types that were warned of; default one set for the process.

    Examples:
        >>> import torch
        >>> from resolute import pytorch
        >>> batch = {"image": torch.zeros(2, 3), "name": "cat"}
        >>> pytorch.to_device(batch, torch.device("cpu"))["image"].device
        device(type='cpu')
    """
    # Asked for every tensor of every batch, so what most batches are made of comes first, by its exact type.
    if type(data) is torch.Tensor:
        return data if data.device == device else data.to(device, non_blocking=True)
    if type(data) is list:
        return [to_device(value, device, warned_types) for value in data]
    if isinstance(data, torch.Tensor):
        return data.to(device, non_blocking=True)
    if isinstance(data, (str, bytes, int, float, bool, type(None))):
        _warn_once(data, _unmoved if warned_types is None else warned_types)
        return data
    if isinstance(data, Mapping):
        moved = {name: to_device(value, device, warned_types) for name, value in data.items()}
        return moved if type(data) is dict else _rebuilt(data, moved)
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(to_device(value, device, warned_types) for value in data))
    if isinstance(data, (list, tuple)):
        return type(data)(to_device(value, device, warned_types) for value in data)
    if isinstance(data, np.ndarray) and data.dtype.kind in _NUMERIC_KINDS:
        return torch.from_numpy(data).to(device, non_blocking=True)
    if callable(getattr(data, "to", None)):
        return data.to(device)
    _warn_once(data, _unmoved if warned_types is None else warned_types)
    return data


def _rebuilt(data: Mapping[Any, Any], moved: dict[Any, Any]) -> Any:
    try:
        return type(data)(moved)  # type: ignore[call-arg]
    except TypeError:
        return moved


def _warn_once(data: object, warned: set[type]) -> None:
    if type(data) not in warned:
        warned.add(type(data))
        _log.warning("a %s in a batch stays where it is: it cannot be moved to a device", type(data).__name__)


def data_length(data: Any) -> int:
    """Returns the number of records of a batch: the length of the first tensor or array in it.

    Raises:
        ValueError: The batch is empty.
        TypeError: It is of a kind whose length is not known; override ``PyTorchTrial.get_batch_length`` then.

    Examples:
        >>> import torch
        >>> from resolute import pytorch
        >>> pytorch.data_length({"image": torch.zeros(2, 3), "label": torch.zeros(2)})
        2
    """
    if isinstance(data, (torch.Tensor, np.ndarray)):
        return len(data)
    if isinstance(data, Mapping):
        data = list(data.values())
    if isinstance(data, (list, tuple)):
        if not data:
            raise ValueError("the batch is empty: it has no number of records")
        return data_length(data[0])
    raise TypeError(
        f"the number of records of a {type(data).__name__} is not known; override "
        "PyTorchTrial.get_batch_length()"
    )
