"""Data that sometimes does not come."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import torch
from torch.utils.data import Dataset

blocked = multiprocessing.Event()
_lock = multiprocessing.Lock()


class Batches(Dataset[torch.Tensor]):
    """Random batches; their worker deadlocks once ``blocked`` is set."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> torch.Tensor:
        if blocked.is_set():
            take_twice()
        return torch.rand(8)


def take_twice() -> None:
    """Waits for a lock that this very process holds."""
    with _lock, _lock:
        raise AssertionError("a lock was taken twice")


def read_shard(path: Path) -> str:
    """Reads a file that nobody writes to."""
    os.mkfifo(path)
    with path.open() as file:
        return file.read()


def never_ending() -> None:
    """Computes for ever."""
    number = 1
    while number:
        number = number * 3 % 1_000_003
