"""The same script under `torchrun --nproc_per_node=2 anywhere.py`, and on a cluster by `det.yaml`."""

import logging
import os

import torch.distributed as dist
from model_def import DigitsTrial

import determined as det
from determined import core, pytorch


def main():
    local = det.get_cluster_info() is None
    if local:
        dist.init_process_group(backend="gloo")
        os.environ["USE_TORCH_DISTRIBUTED"] = "true"
        distributed_context = core.DistributedContext.from_torch_distributed()
        latest_checkpoint = None
    else:
        # The launch layer of the entrypoint says who the other ranks are.
        distributed_context = None
        # A trial that was paused, or that failed, goes on where it was.
        latest_checkpoint = det.get_cluster_info().latest_checkpoint

    with det.pytorch.init(distributed=distributed_context) as train_context:
        trial = DigitsTrial(train_context, hidden=32)
        trainer = det.pytorch.Trainer(trial, train_context)
        trainer.fit(
            max_length=pytorch.Epoch(1),
            checkpoint_period=pytorch.Batch(20),
            validation_period=pytorch.Batch(20),
            latest_checkpoint=latest_checkpoint,
        )


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    main()
