"""``pytorch.init``: the context of a training, on cluster and off."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Iterator, Mapping
from typing import Any

import torch

import resolute
from resolute import core
from resolute.core import DistributedContext, PreemptMode, TensorboardMode
from resolute.info import TRIAL, ClusterInfo
from resolute.pytorch import random_state
from resolute.pytorch.backends import USE_HOROVOD, USE_TORCH_DISTRIBUTED, import_horovod
from resolute.pytorch.context import PyTorchTrialContext

_log = logging.getLogger("resolute.pytorch")
_SEED_VARIABLE = "DET_TRIAL_SEED"


@contextlib.contextmanager
def init(
    *,
    hparams: Mapping[str, Any] | None = None,
    exp_conf: Mapping[str, Any] | None = None,
    distributed: DistributedContext | None = None,
    aggregation_frequency: int = 1,
    enable_tensorboard_logging: bool = True,
) -> Iterator[PyTorchTrialContext]:
    """Makes the context of a training; use it in a ``with`` statement.

    Args:
        hparams: Hyperparameters that the trial asks the context for; on a cluster pass
            ``get_cluster_info().trial.hparams``. ``global_batch_size`` decides the batch of each slot.
        exp_conf: Config that the trial asks the context for; on a cluster it is the experiment's own.
        distributed: The other ranks, for training off cluster; on a cluster the launch layer decides.
        aggregation_frequency: Batches whose gradients are added up for one step of the optimizer.
        enable_tensorboard_logging: Whether metrics are written for TensorBoard.

    Yields:
        The context.

    Raises:
        ValueError: The trial has several slots and was not started by a launch layer for them.
        InvalidExperimentException: The batch has fewer records than the trial has slots.
    """
    info = resolute.get_cluster_info()
    managed = info is not None and info.task_type == TRIAL
    if info is not None and managed:
        distributed = _launched(info)
        exp_conf = info.trial._config
        random_state.seed_all(info.trial.trial_seed)
    core_context = core.init(
        distributed=distributed,
        preempt_mode=PreemptMode.WorkersAskChief,
        tensorboard_mode=TensorboardMode.MANUAL,
    )
    if not managed:
        core_context.info = None
    with core_context:
        dist = core_context.distributed
        seed = info.trial.trial_seed if info is not None and managed else dist.broadcast(_local_seed())
        yield PyTorchTrialContext(
            core_context,
            trial_seed=seed,
            hparams=hparams,
            slots_per_trial=dist.size,
            num_gpus=torch.cuda.device_count(),
            exp_conf=exp_conf,
            aggregation_frequency=aggregation_frequency,
            steps_completed=info.trial._steps_completed if info is not None and managed else 0,
            managed_training=managed,
            debug_enabled=bool(info.trial._debug) if info is not None and managed else False,
            enable_tensorboard_logging=enable_tensorboard_logging,
        )


def _launched(info: ClusterInfo) -> DistributedContext | None:
    """Meets the other ranks, as the launch layer says."""
    if os.environ.get(USE_HOROVOD):
        hvd = import_horovod()
        hvd.init()
        return DistributedContext.from_horovod(hvd)
    if os.environ.get(USE_TORCH_DISTRIBUTED):
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group(backend="nccl" if torch.cuda.is_available() else "gloo")
        return DistributedContext.from_torch_distributed()
    if len(info.container_addrs) > 1 or len(info.slot_ids) > 1:
        raise ValueError(
            "this trial has several slots: you must wrap your training script with a distributed launch "
            "layer, such "
            "as entrypoint: python3 -m determined.launch.torch_distributed -- python3 train.py"
        )
    return None


def _local_seed() -> int:
    """Seed of a training off cluster: the one given, else what this process seeded torch with."""
    given = os.environ.get(_SEED_VARIABLE)
    seed = int(json.loads(given)) if given else torch.initial_seed()
    return seed & 0x7FFFFFFF
