"""``deepspeed.init``: the context of a training with DeepSpeed, on cluster and off."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from resolute.core import DistributedContext
from resolute.info import ClusterInfo
from resolute.pytorch.deepspeed.context import DeepSpeedTrialContext
from resolute.pytorch.deepspeed.library import import_deepspeed
from resolute.pytorch.training.initialization import check_single_slot, open_core_context

_MANUAL = "DET_MANUAL_INIT_DISTRIBUTED"
_CHIEF_IP = "DET_CHIEF_IP"
_LAUNCHER_VARIABLES = ("LOCAL_SIZE", "LOCAL_WORLD_SIZE")
"""One of them is set by whatever launches ranks: the deepspeed launcher, torchrun."""
_SINGLE_RANK_ENVIRONMENT = {
    "RANK": "0",
    "LOCAL_RANK": "0",
    "WORLD_SIZE": "1",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "0",  # any that is free
}
"""What DeepSpeed wants to read where nothing has launched the process."""


@contextlib.contextmanager
def init(
    *,
    hparams: Mapping[str, Any] | None = None,
    exp_conf: Mapping[str, Any] | None = None,
    distributed: DistributedContext | None = None,
    enable_tensorboard_logging: bool = True,
) -> Iterator[DeepSpeedTrialContext]:
    """Creates the context of a training with DeepSpeed. Use it in a ``with`` statement.

    DeepSpeed's communication is set up first, unless the environment variable ``DET_MANUAL_INIT_DISTRIBUTED``
    says that the script has done so.

    Args:
        hparams: Hyperparameters that the trial asks the context for; on a cluster pass
            ``get_cluster_info().trial.hparams``.
        exp_conf: Config that the trial asks the context for; on a cluster it is the experiment's own.
        distributed: The other ranks, for training off cluster; default those that the ``deepspeed`` launcher
            or torchrun started. On a cluster the launch layer decides.
        enable_tensorboard_logging: Whether metrics are written for TensorBoard.

    Yields:
        The context.

    Raises:
        ImportError: DeepSpeed is not installed.
        ValueError: The trial has several slots and was not started by a launch layer for them.
        InvalidExperimentException: The config asks for what DeepSpeed's config should.
    """

    def join_ranks(info: ClusterInfo | None) -> DistributedContext | None:
        started = any(name in os.environ for name in _LAUNCHER_VARIABLES)
        if info is not None and not started:
            check_single_slot(info, layer="deepspeed")
        _set_up_communication()
        if info is None and distributed is not None:
            return distributed
        return _join_launched_ranks() if started else None

    with open_core_context(join_ranks, exp_conf=exp_conf) as arguments:
        yield DeepSpeedTrialContext(
            arguments.core_context,
            trial_seed=arguments.trial_seed,
            hparams=hparams,
            slots_per_trial=arguments.core_context.distributed.size,
            num_gpus=torch.cuda.device_count(),
            exp_conf=arguments.exp_conf,
            steps_completed=arguments.steps_completed,
            debug_enabled=arguments.debug_enabled,
            enable_tensorboard_logging=enable_tensorboard_logging,
        )


def _set_up_communication() -> None:
    """Initializes DeepSpeed's communication, among a launcher's ranks or for this process alone."""
    library = import_deepspeed()
    if os.environ.get(_MANUAL):
        return
    for name, value in _SINGLE_RANK_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    library.init_distributed(auto_mpi_discovery=False)


def _join_launched_ranks() -> DistributedContext:
    """Connects to the ranks that a launcher has started."""
    chief = os.environ.get(_CHIEF_IP) or os.environ.get("MASTER_ADDR")
    if "LOCAL_WORLD_SIZE" in os.environ:
        return DistributedContext.from_torch_distributed(chief)
    return DistributedContext.from_deepspeed(chief)
