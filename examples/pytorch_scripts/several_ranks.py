"""Several processes on this machine: `torchrun --nproc_per_node=2 several_ranks.py`."""

import logging
import os

import torch.distributed as dist
from model_def import DigitsTrial

import determined as det
from determined import core, pytorch


def main():
    # The process group comes before pytorch.init(); "nccl" on GPUs.
    dist.init_process_group(backend="gloo")
    # Says how gradients are exchanged.
    os.environ["USE_TORCH_DISTRIBUTED"] = "true"
    with det.pytorch.init(distributed=core.DistributedContext.from_torch_distributed()) as train_context:
        trial = DigitsTrial(train_context, hidden=32)
        trainer = det.pytorch.Trainer(trial, train_context)
        trainer.fit(
            max_length=pytorch.Epoch(1),
            checkpoint_period=pytorch.Batch(20),
            validation_period=pytorch.Batch(20),
            checkpoint_policy="all",
        )
    dist.destroy_process_group()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    main()
