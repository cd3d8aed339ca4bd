"""Data loaders as people write them beside the platform's."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils import data

from resolute import pytorch
from resolute.pytorch import samplers

FURTHER_RECORDS = 11


class Shuffled:
    """Deals batches in an order that it draws for each pass, and tells where it is."""

    def __init__(self, dataset: Any, size: int) -> None:
        self.dataset = dataset
        self.size = size
        self.order: list[int] = []
        self.dealt = 0

    def __len__(self) -> int:
        return (len(self.dataset) + self.size - 1) // self.size

    def __iter__(self) -> Iterator[Any]:
        if self.dealt >= len(self):
            self.order, self.dealt = [], 0
        if not self.order:
            self.order = torch.randperm(len(self.dataset)).tolist()
        while self.dealt < len(self):
            self.dealt += 1
            part = self.order[(self.dealt - 1) * self.size : self.dealt * self.size]
            yield data.default_collate([self.dataset[index] for index in part])

    def state_dict(self) -> dict[str, Any]:
        return {"order": list(self.order), "dealt": self.dealt}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.order, self.dealt = list(state["order"]), state["dealt"]


class ReadsAhead:
    """Has the next batches of another loader at hand, and tells of those too."""

    def __init__(self, loader: Shuffled, depth: int) -> None:
        self.loader = loader
        self.depth = depth
        self.waiting: deque[Any] = deque()
        self.ends_with_waiting = False

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        # The other loader may have ended its pass before this one: what waits is the rest of it.
        inner: Iterator[Any] = iter(()) if self.ends_with_waiting else iter(self.loader)
        self.ends_with_waiting = False
        while True:
            self.waiting.extend(itertools.islice(inner, self.depth - len(self.waiting)))
            if not self.waiting:
                return
            yield self.waiting.popleft()

    def state_dict(self) -> dict[str, Any]:
        return {"inner": self.loader.state_dict(), "waiting": list(self.waiting)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.loader.load_state_dict(state["inner"])
        self.waiting = deque(state["waiting"])
        self.ends_with_waiting = bool(self.waiting) and self.loader.dealt >= len(self.loader)


class Zipped:
    """Two loaders, of which the shorter begins again."""

    def __init__(self, first: Any, second: Any) -> None:
        self.both = (first, second)

    def __len__(self) -> int:
        return len(self.both[0])

    def __iter__(self) -> Iterator[Any]:
        first, second = self.both
        other = iter(second)
        for x, y, indices in first:
            batch = next(other, None)
            if batch is None:
                other = iter(second)
                batch = next(other)
            yield x + batch.float().mean() * 0.01, y, indices

    def state_dict(self) -> list[Any]:
        return [loader.state_dict() for loader in self.both]

    def load_state_dict(self, states: list[Any]) -> None:
        for loader, state in zip(self.both, states, strict=True):
            loader.load_state_dict(state)


class Prefetcher:
    """Holds an iterator over a loader, and its next batch."""

    def __init__(self, loader: Any) -> None:
        self.batches = iter(loader)
        self.upcoming = next(self.batches)


class Place(pytorch.PyTorchCallback):
    """Keeps where a loader is."""

    def __init__(self, loader: Shuffled) -> None:
        self.loader = loader

    def state_dict(self) -> dict[str, Any]:
        return self.loader.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.loader.load_state_dict(state_dict)


def loader(kind: str, dataset: Any, *, size: int, skip: int) -> Any:
    """The training loader of a program that cares for the order of its data itself."""
    if kind == "torchdata":
        return _torchdata(dataset, size)
    if kind == "skips":
        batches: Any = samplers.ReproducibleShuffleSampler(data.SequentialSampler(dataset), 5)
        batches = data.BatchSampler(samplers.RepeatSampler(batches), size, drop_last=False)
        return data.DataLoader(
            dataset, batch_sampler=samplers.SkipBatchSampler(batches, skip), generator=torch.Generator()
        )
    shuffled = Shuffled(dataset, size)
    if kind == "reads_ahead":
        return ReadsAhead(shuffled, depth=3)
    return Zipped(shuffled, further("own", process=0)) if kind == "zipped" else shuffled


def further(kind: str, *, process: int) -> Any:
    """The second loader of a program; None if it has none."""
    if not kind:
        return None
    numbers: Any = torch.arange(FURTHER_RECORDS)
    if kind == "torchdata":
        return _torchdata(numbers, 3)
    if kind in {"own", "callback"}:
        return Shuffled(numbers, 3)
    torch_loader = data.DataLoader(numbers, 3, shuffle=True)
    if kind == "prefetcher":
        return Prefetcher(torch_loader)
    return itertools.cycle(torch_loader) if kind == "cycle" else iter(torch_loader)


def _torchdata(dataset: Any, size: int) -> Any:
    stateful = pytest.importorskip("torchdata.stateful_dataloader", reason="torchdata is not installed")
    return stateful.StatefulDataLoader(dataset, batch_size=size, shuffle=True)
