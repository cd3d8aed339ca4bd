"""Data-parallel training with Horovod: one process for each slot, on one machine or several.

The launcher (see horovod.yaml) starts this script once for each slot; Horovod knows which rank it is.
"""

import logging

import horovod.torch as hvd
import torch
from loop import train
from problem import build_model

import determined as det


def main(core_context, info):
    torch.manual_seed(info.trial.trial_seed)
    model = build_model()
    adam = torch.optim.Adam(model.parameters(), lr=info.trial.hparams["learning_rate"])
    # Averages gradients before each of its steps.
    optimizer = hvd.DistributedOptimizer(adam, named_parameters=model.named_parameters())
    train(core_context, info, model=model, optimizer=optimizer, parallel=model)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    hvd.init()
    with det.core.init(distributed=det.core.DistributedContext.from_horovod(hvd)) as context:
        main(context, det.get_cluster_info())
