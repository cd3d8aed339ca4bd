"""A training as a process of its own, or as ranks of a launcher, to be killed and started again.

Arguments: a directory, a backend, how many batches in all, and a checkpoint to continue from, or none. At its
end it leaves, for each rank, all state and all reports.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from support.training.ranks.processes import joined
from support.training.trials import ScaledTrial, local_context, state_of

from resolute.pytorch import Batch, Trainer
from resolute.pytorch.backends.random_state import seed_all

CHECKPOINT_PERIOD = 10


class Watched(ScaledTrial):
    """Says which batch it is at. Data come from workers, gradients of two batches make a step."""

    workers = 1

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        print(f"batch {batch_idx}", flush=True)
        return super().train_batch(batch, epoch_idx, batch_idx)


def main() -> None:
    directory, backend, batches, *checkpoint = sys.argv[1:]
    with joined(backend) as distributed:
        # What the process begins with must not matter once it continues from a checkpoint.
        seed_all(1000 * len(checkpoint) + distributed.rank)
        context, recorder = local_context(Path(directory), distributed=distributed, aggregation_frequency=2)
        trial = Watched(context)
        Trainer(trial, context).fit(
            max_length=Batch(int(batches)),
            checkpoint_period=Batch(CHECKPOINT_PERIOD),
            validation_period=Batch(15),
            reporting_period=Batch(5),
            checkpoint_policy="none",
            latest_checkpoint=checkpoint[0] if checkpoint else None,
        )
        left = {"state": state_of(trial), "reports": recorder.reports, "seen": trial.seen}
        torch.save(left, Path(directory) / f"left-{distributed.rank}.pt")


if __name__ == "__main__":
    main()
