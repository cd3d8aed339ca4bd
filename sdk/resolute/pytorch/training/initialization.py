"""``pytorch.init``: the context of a training, on cluster and off."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

import resolute
from resolute import core
from resolute.core import DistributedContext, PreemptMode, TensorboardMode
from resolute.info import TRIAL, ClusterInfo
from resolute.pytorch.backends import random_state
from resolute.pytorch.backends.gradient_exchange import USE_HOROVOD, USE_TORCH_DISTRIBUTED, import_horovod
from resolute.pytorch.trial.context import PyTorchTrialContext

_log = logging.getLogger("resolute.pytorch")
_SEED_VARIABLE = "DET_TRIAL_SEED"
_USE_DEEPSPEED = "USE_DEEPSPEED"
"""Set by the launch layer of DeepSpeed, whose ranks train a DeepSpeedTrial."""


@contextlib.contextmanager
def init(
    *,
    hparams: Mapping[str, Any] | None = None,
    exp_conf: Mapping[str, Any] | None = None,
    distributed: DistributedContext | None = None,
    aggregation_frequency: int = 1,
    enable_tensorboard_logging: bool = True,
) -> Iterator[PyTorchTrialContext]:
    """Creates the context of a training. Use it in a ``with`` statement.

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
        ValueError: The trial has several slots and was not started by a launch layer for them, or was by that
            of DeepSpeed.
        InvalidExperimentException: The batch has fewer records than the trial has slots.

    Examples:
        >>> from resolute import pytorch
        >>> with pytorch.init(hparams={"lr": 0.1}) as context:
        ...     context.get_hparam("lr")
        0.1
    """

    def join_ranks(info: ClusterInfo | None) -> DistributedContext | None:
        return distributed if info is None else _join_launched_ranks(info)

    with open_core_context(join_ranks, exp_conf=exp_conf) as arguments:
        yield PyTorchTrialContext(
            arguments.core_context,
            trial_seed=arguments.trial_seed,
            hparams=hparams,
            slots_per_trial=arguments.core_context.distributed.size,
            num_gpus=torch.cuda.device_count(),
            exp_conf=arguments.exp_conf,
            aggregation_frequency=aggregation_frequency,
            steps_completed=arguments.steps_completed,
            managed_training=arguments.managed,
            debug_enabled=arguments.debug_enabled,
            enable_tensorboard_logging=enable_tensorboard_logging,
        )


@dataclass(frozen=True, slots=True)
class ContextArguments:
    """The arguments of the context of any kind of trial."""

    core_context: core.Context
    trial_seed: int
    """Equal on all ranks."""
    exp_conf: Mapping[str, Any] | None
    """The experiment's own on a cluster, else what the script gave."""
    steps_completed: int
    managed: bool
    """Whether this is a trial of a cluster."""
    debug_enabled: bool


@contextlib.contextmanager
def open_core_context(
    join_ranks: Callable[[ClusterInfo | None], DistributedContext | None],
    *,
    exp_conf: Mapping[str, Any] | None,
) -> Iterator[ContextArguments]:
    """Connects to the other ranks, seeds random generators on a cluster, and opens the Core API.

    Args:
        join_ranks: Returns the other ranks, of a trial of a cluster or else of None; None for no others.
        exp_conf: Config of a training off cluster.

    Yields:
        What a context is made of.
    """
    info = resolute.get_cluster_info()
    if info is not None and info.task_type != TRIAL:
        info = None
    distributed = join_ranks(info)
    if info is not None:
        exp_conf = info.trial._config
        random_state.seed_all(info.trial.trial_seed)
    core_context = core.init(
        distributed=distributed,
        preempt_mode=PreemptMode.WorkersAskChief,
        tensorboard_mode=TensorboardMode.MANUAL,
    )
    if info is None:
        core_context.info = None
    with core_context:
        dist = core_context.distributed
        yield ContextArguments(
            core_context=core_context,
            trial_seed=dist.broadcast(_local_seed()) if info is None else info.trial.trial_seed,
            exp_conf=exp_conf,
            steps_completed=0 if info is None else info.trial._steps_completed,
            managed=info is not None,
            debug_enabled=False if info is None else bool(info.trial._debug),
        )


def _join_launched_ranks(info: ClusterInfo) -> DistributedContext | None:
    """Connects to the other ranks, as the launch layer configured them."""
    if os.environ.get(USE_HOROVOD):
        hvd = import_horovod()
        hvd.init()
        return DistributedContext.from_horovod(hvd)
    if os.environ.get(USE_TORCH_DISTRIBUTED):
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group(backend="nccl" if torch.cuda.is_available() else "gloo")
        return DistributedContext.from_torch_distributed()
    if os.environ.get(_USE_DEEPSPEED) and _has_several_slots(info):
        raise ValueError(
            "a PyTorchTrial trains by Horovod or torch.distributed; under determined.launch.deepspeed use a "
            "DeepSpeedTrial, or launch with python3 -m determined.launch.torch_distributed"
        )
    check_single_slot(info, layer="torch_distributed")
    return None


def check_single_slot(info: ClusterInfo, *, layer: str) -> None:
    """Checks that a trial without a launch layer has only one slot.

    Args:
        info: The trial.
        layer: The launch layer to advise.

    Raises:
        ValueError: It has several.
    """
    if _has_several_slots(info):
        raise ValueError(
            "this trial has several slots: you must wrap your training script with a distributed launch "
            f"layer, such as entrypoint: python3 -m determined.launch.{layer} -- python3 train.py"
        )


def _has_several_slots(info: ClusterInfo) -> bool:
    return len(info.container_addrs) > 1 or len(info.slot_ids) > 1


def _local_seed() -> int:
    """Seed of a training off cluster: the one given, else what this process seeded torch with."""
    given = os.environ.get(_SEED_VARIABLE)
    seed = int(json.loads(given)) if given else torch.initial_seed()
    return seed & 0x7FFFFFFF
