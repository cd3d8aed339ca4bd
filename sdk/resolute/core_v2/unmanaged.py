"""Unmanaged trials in separate calls, as in 0.23: one for an experiment, one for a trial, one for a context.

``core_v2.init`` does all of this in one call.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.core import Context, DistributedContext, DummyDistributedContext, PreemptMode, TensorboardMode
from resolute.core.checkpoint.storage import parse_storage
from resolute.core.initialization import disable_grpc_fork_support
from resolute.core.unmanaged.config import Config
from resolute.core.unmanaged.context import begin
from resolute.errors import FailedPreconditionError
from resolute.info import TRIAL, ClusterInfo, RendezvousInfo, TrialInfo
from resolute.runtime.offline_run import OfflineRun

if TYPE_CHECKING:
    from resolute.client import Client

__all__ = [
    "build_unmanaged_trial_cluster_info",
    "create_unmanaged_cluster_info",
    "create_unmanaged_experiment",
    "create_unmanaged_trial",
    "create_unmanaged_trial_cluster_info",
    "init",
    "url_reverse_webui_exp_view",
]

T = TypeVar("T")


def create_unmanaged_experiment(
    client: Client, config_text: str, distributed: DistributedContext | None = None
) -> int:
    """Makes an experiment without trials, and returns its number.

    Args:
        client: The cluster.
        config_text: The experiment's whole config, as YAML.
        distributed: The other processes, which all call this; the chief makes the experiment.
    """
    config = _config(_parse(config_text), hparams={})

    def create() -> int:
        return client.services.trials.begin_experiment(
            name=config.name or "unmanaged", config=config.fields(), external_id=str(uuid.uuid4())
        )

    return _by_chief(distributed, create)


def create_unmanaged_trial(
    client: Client,
    exp_id: int,
    hparams: Mapping[str, Any] | None = None,
    distributed: DistributedContext | None = None,
) -> tuple[int, str]:
    """Makes a trial of such an experiment; unless ``init`` begins it within five minutes, it shows as lost.

    Args:
        client: The cluster.
        exp_id: Number of the experiment.
        hparams: Hyperparameters.
        distributed: The other processes, which all call this; the chief makes the trial.

    Returns:
        The trial's number, and the identifier of its task.

    Raises:
        FailedPreconditionError: The experiment has no name outside of the cluster, such as one that the
            cluster runs.
    """

    def create() -> tuple[int, str]:
        experiment = client.services.experiments.get(exp_id)
        if not experiment.external_id:
            raise FailedPreconditionError(
                f"experiment {exp_id} takes no unmanaged trials: make one by create_unmanaged_experiment()"
            )
        announced = OfflineRun(
            Path(),  # nothing is recorded yet
            str(uuid.uuid4()),
            experiment.name,
            SYSTEM_CLOCK.time(),
            hparams=dict(hparams or {}),
            external_experiment_id=experiment.external_id,
        )
        return client.services.trials.begin(announced).trial.id, announced.run_id

    return _by_chief(distributed, create)


def build_unmanaged_trial_cluster_info(
    client: Client,
    exp_id: int,
    trial_id: int,
    task_id: str,
    config_text: str,
    hparams: Mapping[str, Any] | None = None,
) -> ClusterInfo:
    """Describes a trial for ``init``.

    Args:
        client: The cluster.
        exp_id: Number of the experiment.
        trial_id: Number of the trial.
        task_id: Identifier of its task.
        config_text: The experiment's whole config, as YAML.
        hparams: Hyperparameters.
    """
    return ClusterInfo(
        master_url=client.services.session.endpoint.master_url,
        cluster_id=client.services.cluster.get().cluster_id,
        agent_id="unmanaged",
        slot_ids=[],
        task_id=task_id,
        allocation_id=task_id,
        session_token="",
        task_type=TRIAL,
        trial_info=TrialInfo(
            trial_id=trial_id,
            experiment_id=exp_id,
            trial_seed=0,
            hparams=dict(hparams or {}),
            config=_parse(config_text),
            steps_completed=0,
            trial_run_id=0,
        ),
        rendezvous_info=RendezvousInfo(["127.0.0.1"], 0, [0]),
    )


def create_unmanaged_trial_cluster_info(
    client: Client,
    config_text: str,
    exp_id: int,
    hparams: Mapping[str, Any] | None = None,
    distributed: DistributedContext | None = None,
) -> ClusterInfo:
    """Makes a trial of such an experiment, and describes it for ``init``. The arguments are those of both."""
    trial_id, task_id = create_unmanaged_trial(client, exp_id, hparams, distributed)
    return build_unmanaged_trial_cluster_info(client, exp_id, trial_id, task_id, config_text, hparams)


def create_unmanaged_cluster_info(
    client: Client,
    config_text: str,
    hparams: Mapping[str, Any] | None = None,
    distributed: DistributedContext | None = None,
) -> ClusterInfo:
    """Makes an experiment with one trial, and describes it for ``init``. The arguments are those of both."""
    exp_id = create_unmanaged_experiment(client, config_text, distributed)
    return create_unmanaged_trial_cluster_info(client, config_text, exp_id, hparams, distributed)


def init(
    *,
    distributed: DistributedContext | None = None,
    checkpoint_storage: str | Mapping[str, Any] | None = None,
    preempt_mode: PreemptMode = PreemptMode.WorkersAskChief,
    tensorboard_mode: TensorboardMode = TensorboardMode.AUTO,
    unmanaged_info: ClusterInfo | None = None,
    client: Client | None = None,
) -> Context:
    """Makes the context of a trial that was made before, for a ``with`` statement.

    Args:
        distributed: The other processes of the trial. They must see the same directories.
        checkpoint_storage: Where checkpoints go, as for ``core.init``.
        preempt_mode: Which processes ask whether to stop.
        tensorboard_mode: Who writes and copies TensorBoard files.
        unmanaged_info: What ``create_unmanaged_cluster_info`` or one of the others returned.
        client: The cluster; None for the one that RESOLUTE_MASTER, DET_MASTER or the home names.

    Raises:
        ValueError: ``unmanaged_info`` is missing.
        ResoluteError: The cluster cannot be reached, or does not take the trial.
    """
    if unmanaged_info is None:
        raise ValueError(
            "you must provide the `unmanaged_info` object: create_unmanaged_cluster_info() returns one"
        )
    disable_grpc_fork_support()
    trial = unmanaged_info.trial
    return begin(
        config=_config(trial._config, hparams=trial.hparams),  # noqa: SLF001 - the documented private name
        client=client,
        run_id=unmanaged_info.task_id,
        distributed=distributed or DummyDistributedContext(),
        checkpoint_storage=None if checkpoint_storage is None else parse_storage(checkpoint_storage),
        preempt_mode=preempt_mode,
        tensorboard_mode=tensorboard_mode,
    )


def url_reverse_webui_exp_view(client: Client, exp_id: int) -> str:
    """Returns the address of an experiment's page."""
    return f"{client.services.session.endpoint.master_url}/det/experiments/{exp_id}"


def _parse(config_text: str) -> dict[str, Any]:
    config = yaml.safe_load(config_text)
    if not isinstance(config, dict):
        raise TypeError(f"the experiment config is {type(config).__name__}; a map was expected")
    return config


def _config(config: Mapping[str, Any], *, hparams: Mapping[str, Any]) -> Config:
    """The part of a whole config that means something where no cluster runs the script."""
    known = {field.name: config[field.name] for field in fields(Config) if config.get(field.name) is not None}
    return Config(**{**known, "hparams": hparams})


def _by_chief(distributed: DistributedContext | None, create: Callable[[], T]) -> T:
    if distributed is None:
        return create()
    made: T = distributed.broadcast(create() if distributed.rank == 0 else None)
    return made
