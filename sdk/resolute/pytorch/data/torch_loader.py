"""Turns a torch data loader into one that is sharded over ranks and can start at any batch."""

from __future__ import annotations

from typing import Any, cast

from torch.utils import data as torch_data
from torch.utils.data._utils.collate import default_collate

from resolute.pytorch.data.loader import DataLoader

_SAME = (
    *("num_workers", "pin_memory", "timeout", "worker_init_fn", "multiprocessing_context", "generator"),
    *("prefetch_factor", "persistent_workers"),
)
_NEWER = {"pin_memory_device": "", "in_order": True}
"""Arguments that not every release of torch has, with their defaults."""


def from_torch(loader: object) -> object:
    """Returns a ``resolute.pytorch.DataLoader`` with the arguments of torch's.

    What cannot be converted is returned as it is: other classes, an ``IterableDataset``, records without
    batches.
    """
    if (
        type(loader) is not torch_data.DataLoader
        or isinstance(loader.dataset, torch_data.IterableDataset)
        or loader.batch_sampler is None
    ):
        return loader
    options: dict[str, Any] = {name: getattr(loader, name) for name in _SAME}
    options |= {
        name: getattr(loader, name) for name, usual in _NEWER.items() if getattr(loader, name, usual) != usual
    }
    if loader.collate_fn is not default_collate:
        options["collate_fn"] = loader.collate_fn
    if loader.batch_size is None:  # batches by a sampler of the trial's own
        return DataLoader(loader.dataset, batch_sampler=loader.batch_sampler, **options)
    options |= {"batch_size": loader.batch_size, "drop_last": loader.drop_last}
    if _is_shuffle(loader):
        return DataLoader(loader.dataset, shuffle=True, **options)
    return DataLoader(loader.dataset, sampler=None if _is_in_order(loader) else loader.sampler, **options)


def _is_in_order(loader: torch_data.DataLoader[Any]) -> bool:
    """Whether the sampler is the one of a loader that is given none."""
    sampler, records = loader.sampler, cast("Any", loader.dataset)
    return type(sampler) is torch_data.SequentialSampler and sampler.data_source is records


def _is_shuffle(loader: torch_data.DataLoader[Any]) -> bool:
    """Whether the sampler is the one that ``shuffle=True`` makes."""
    sampler, records = loader.sampler, cast("Any", loader.dataset)
    return (
        type(sampler) is torch_data.RandomSampler
        and not sampler.replacement
        and sampler.generator is loader.generator
        and sampler.data_source is records
        and sampler.num_samples == len(records)
    )
