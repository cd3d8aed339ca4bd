"""Training in several runs, each of which is paused, as if in processes of their own."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from support.training.trials import newest_checkpoint

from resolute import core
from resolute.testing import simulate_preemption


@dataclass(frozen=True)
class Run:
    """One run of a training."""

    directory: Path
    """Where checkpoints are."""
    checkpoint: str | None = None
    """What it goes on from."""
    pause: int = 0
    """After which batch it is asked to pause; 0 for never."""
    process: int = 0
    """What a process starts with that a script leaves to the system: it must not matter once it resumes."""

    @contextlib.contextmanager
    def begun(self) -> Iterator[Callable[[int], None]]:
        """Begins as a process of its own; yields what is told of each batch that was trained.

        Of several ranks the chief alone is asked to pause.
        """
        rank = dist.get_rank() if dist.is_initialized() else 0
        random.seed(self.process + rank)
        np.random.seed(self.process + rank)
        torch.manual_seed(self.process + rank)
        with simulate_preemption(after_checks=10**9) as signal:
            yield lambda batch: signal.request() if 0 < self.pause <= batch and rank == 0 else None
            assert signal.acknowledged == bool(self.pause)

    def context(self) -> core.Context:
        """The Core API of this run, for all ranks."""
        distributed = core.DistributedContext.from_torch_distributed() if dist.is_initialized() else None
        return core.init(checkpoint_storage=str(self.directory), distributed=distributed)


Training = Callable[[Run], tuple[Any, list[Any]]]
"""Trains; returns all that decides how training goes on, and the records of each batch."""


def train_in_parts(training: Training, directory: Path, pauses: Sequence[int]) -> tuple[Any, list[Any]]:
    """Trains to the end in several runs; returns what an unpaused training returns."""
    checkpoint, dealt = None, []
    for process, pause in enumerate([*pauses, 0]):
        state, part = training(Run(directory, checkpoint, pause, process))
        dealt += part
        if dist.is_initialized():
            dist.barrier()
        checkpoint = newest_checkpoint(directory)
    return state, dealt
