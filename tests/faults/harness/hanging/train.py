"""Ranks that train together, until one of them keeps the others waiting in the way that its config names."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import torch
from data import Batches, blocked, never_ending, read_shard  # type: ignore[import-not-found]
from torch import distributed as dist
from torch.utils.data import DataLoader

from resolute import core, get_cluster_info


def keep_waiting(kind: str) -> None:
    """Does what never ends; returns only for a rank that leaves the others early."""
    print(f"planted at {time.time()}", flush=True)
    if kind == "sleep":
        time.sleep(1e6)
    elif kind == "loader":
        blocked.set()
    elif kind == "file":
        read_shard(Path(os.environ["TMPDIR"], "shard"))
    elif kind == "loop":
        never_ending()
    elif kind == "validation":
        quiet_validation(30.0)


def quiet_validation(seconds: float) -> None:
    """Works for long without a word, and leaves most of the machine to others.

    On a busy machine, too, it uses more than the twentieth of a core from which a process counts as busy.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.process_time()
        while time.process_time() - began < 0.01:
            torch.ones(200, 200) @ torch.ones(200, 200)
        time.sleep(0.02)


def average(values: torch.Tensor) -> torch.Tensor:
    """Exchanges with the others."""
    dist.all_reduce(values)
    return values / dist.get_world_size()


def train(context: core.Context, hparams: dict[str, Any]) -> None:
    """Trains some steps."""
    rank = dist.get_rank()
    guilty = rank == hparams["rank"]
    batches = iter(
        DataLoader(Batches(10_000), batch_size=1, num_workers=1 if hparams["kind"] == "loader" else 0)
    )
    for step in range(1, 10_001):
        if step == hparams["step"] and hparams["kind"] == "validation":
            context.train.set_status("validating")
            keep_waiting("validation")
            if rank == 0:
                context.train.report_validation_metrics(step, {"loss": 0.0})
            return
        if step == hparams["step"] and guilty:
            keep_waiting(hparams["kind"])
            if hparams["kind"] == "ended":
                break
        batch = next(batches)
        average(batch)
        if rank == 0:
            context.train.report_training_metrics(step, {"loss": 1.0 / step})
        context.preempt.should_preempt()
        time.sleep(0.02)
    dist.barrier()


def main() -> None:
    """Runs one rank."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    info = get_cluster_info()
    assert info is not None
    distributed = core.DistributedContext.from_torch_distributed()
    mode = core.PreemptMode.WorkersAskMaster
    with core.init(distributed=distributed, preempt_mode=mode) as context:
        train(context, info.trial.hparams)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
