"""Data-parallel training with torch.distributed: one process for each slot, on one machine or several.

The launcher (see torchrun.yaml) starts this script once for each slot and says by variables which rank it is.
"""

import logging

import torch
from loop import train
from problem import build_model
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel

import determined as det


def main(core_context, info):
    torch.manual_seed(info.trial.trial_seed)
    model = build_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=info.trial.hparams["learning_rate"])
    # Averages gradients during the backward pass.
    parallel = DistributedDataParallel(model)
    train(core_context, info, model=model, optimizer=optimizer, parallel=parallel)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    # This model stays on CPUs; one on GPUs wants "nccl".
    dist.init_process_group("gloo")
    try:
        with det.core.init(distributed=det.core.DistributedContext.from_torch_distributed()) as context:
            main(context, det.get_cluster_info())
    finally:
        dist.destroy_process_group()
