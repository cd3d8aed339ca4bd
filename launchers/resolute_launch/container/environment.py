"""The environment variables of an entrypoint."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from resolute.contracts.run.directory import ENVIRONMENT_VARIABLE, RunDirectory
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.info import DIRECTORY_VARIABLE, TRIAL, ClusterInfo, TrialInfo
from resolute.runtime.environment_variables import configured_variables
from resolute.transfer import cache
from resolute_launch import environment_variables
from resolute_launch.container.output import stderr_pipe, stdout_pipe
from resolute_launch.container.task import Task
from resolute_launch.installation import INTERPRETER

_OURS = ("RESOLUTE_", "DET_")
_NOT_OURS = (
    "RESOLUTE_SPOOL_LIMIT",
    "RESOLUTE_OUTAGE_TIMEOUT_SECONDS",
    "RESOLUTE_PATIENCE_SECONDS",
    cache.DIRECTORY_VARIABLE,
    cache.LIMIT_VARIABLE,
)
_COLLECTIVES = "2000"
"""That NCCL remembers."""
_LONGEST_VALUE = 100_000
"""Bytes of one variable: the kernel refuses to start programs with more than 128 KiB in one."""


def cleaned(environ: Mapping[str, str]) -> dict[str, str]:
    """Drops what an enclosing run may have set: a trial within a trial is a run of its own."""
    return {name: value for name, value in environ.items() if not name.startswith(_OURS) or name in _NOT_OURS}


def task_environment(
    base: Mapping[str, str], *, task: Task, info: ClusterInfo, scratch: Path
) -> dict[str, str]:
    """Builds the environment of the startup hook and the entrypoint.

    Args:
        base: What the supervisor itself was started with.
        task: The run's task; its config may add ``environment.environment_variables``.
        info: What the task may know of its cluster.
        scratch: Takes temporary files, unless the config names another place.
    """
    order = task.order
    environment = cleaned(base)
    environment["PATH"] = _joined([str(Path(order.python).parent)], environment.get("PATH", os.defpath))
    # A pipe makes Python write in blocks, and the log would come minutes late.
    environment["PYTHONUNBUFFERED"] = "1"
    environment["TMPDIR"] = str(scratch)
    if order.slot_kind == "gpu":
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(order.devices)
        environment |= _flight_recorder(task.run)
    # With DET_MASTER it signs the SDK in, whatever the home; a config may name another.
    environment[environment_variables.USER_TOKEN_FILE] = str(task.run.user_token_file)
    environment |= configured_variables(task.config, slot_kind=order.slot_kind, agent=base)
    environment |= _secrets(task)
    theirs = environment.get("PYTHONPATH", "")
    environment["PYTHONPATH"] = _joined([order.compat_path, theirs], str(INTERPRETER))
    environment |= _facts(order, info)
    environment[ENVIRONMENT_VARIABLE] = str(task.run.path)
    environment[environment_variables.STDOUT] = str(stdout_pipe(task.run))
    environment[environment_variables.STDERR] = str(stderr_pipe(task.run))
    environment[DIRECTORY_VARIABLE] = str(task.run.info)
    environment[environment_variables.TERMINATION_GRACE] = f"{task.term_grace_seconds:g}"
    return {name: value for name, value in environment.items() if len(os.fsencode(value)) <= _LONGEST_VALUE}


def rendezvous_environment(ports: Sequence[Sequence[int]], *, key: str) -> dict[str, str]:
    """The variables that depend on other containers: their ports, and the secret of the collectives.

    Args:
        ports: Free ports of each container, by rank: two for the collectives, one for torch.distributed, one
            for workers that all listen. Of the first three, the first container's are used by all.
        key: Secret that all containers of the run share.
    """
    first = ports[0]
    return {
        environment_variables.COLLECTIVE_KEY: key,
        environment_variables.COLLECTIVE_PORTS: f"{first[0]},{first[1]}",
        environment_variables.C10D_PORT: str(first[2]),
        environment_variables.CONTAINER_PORTS: ",".join(str(numbers[3]) for numbers in ports),
    }


def _flight_recorder(run: RunDirectory) -> dict[str, str]:
    """Has NCCL remember its last collectives, and write them into the run directory when they time out."""
    dumps = str(run.flight / "rank")
    return {
        "TORCH_NCCL_TRACE_BUFFER_SIZE": _COLLECTIVES,
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": dumps,
        # As releases of torch from 2.8 on call them.
        "TORCH_FR_BUFFER_SIZE": _COLLECTIVES,
        "TORCH_FR_DUMP_TEMP_FILE": dumps,
    }


def _secrets(task: Task) -> dict[str, str]:
    """Where the secrets lie, and those that the config wants as variables."""
    if not task.secrets:
        return {}
    named = {each.variable: task.run.read_secret(each.name) for each in task.secrets if each.variable}
    return {environment_variables.SECRETS: str(task.run.secrets), **named}


def _facts(order: LaunchOrder, info: ClusterInfo) -> dict[str, str]:
    host, _, port = order.master.rpartition(":")
    facts = {
        "DET_MASTER": order.master,
        "DET_MASTER_ADDR": host,
        "DET_MASTER_HOST": host,
        "DET_MASTER_PORT": port,
        "DET_USE_TLS": str(order.tls is not None).lower(),
        "DET_CLUSTER_ID": info.cluster_id,
        "DET_AGENT_ID": info.agent_id,
        "DET_SLOT_IDS": json.dumps(info.slot_ids),
        "DET_USE_GPU": str(order.slot_kind == "gpu").lower(),
        "DET_TASK_ID": info.task_id,
        "DET_TASK_TYPE": info.task_type,
        "DET_ALLOCATION_ID": info.allocation_id,
        "DET_SESSION_TOKEN": info.session_token,
        "DET_ALLOCATION_SESSION_TOKEN": info.session_token,
        "DET_RESOURCES_ID": f"{order.allocation_id}.{order.container_rank}",
        "DET_RESOURCES_TYPE": "docker-container",
        "DET_CONTAINER_ID": f"{order.allocation_id}.{order.container_rank}",
        "DET_UNIQUE_PORT_OFFSET": str(min(order.slot_ids, default=0)),
    }
    if info.task_type == TRIAL:
        facts |= _trial_facts(info.trial)
    if info.master_cert_file:
        facts["DET_MASTER_CERT_FILE"] = info.master_cert_file
    if info.master_cert_name:
        facts["DET_MASTER_CERT_NAME"] = info.master_cert_name
    if info.latest_checkpoint:
        facts["DET_LATEST_CHECKPOINT"] = info.latest_checkpoint
    return facts


def _trial_facts(trial: TrialInfo) -> dict[str, str]:
    steps = str(trial._steps_completed)  # noqa: SLF001 - the documented private names of the info files
    return {
        "DET_TRIAL_ID": str(trial.trial_id),
        "DET_EXPERIMENT_ID": str(trial.experiment_id),
        "DET_TRIAL_SEED": str(trial.trial_seed),
        "DET_TRIAL_RUN_ID": str(trial._trial_run_id),  # noqa: SLF001
        "DET_STEPS_COMPLETED": steps,
        "DET_LATEST_BATCH": steps,
        "DET_HPARAMS": json.dumps(trial.hparams),
        "DET_EXPERIMENT_CONFIG": json.dumps(trial._config),  # noqa: SLF001
    }


def _joined(first: Sequence[str], rest: str) -> str:
    return os.pathsep.join(part for part in (*first, rest) if part)
