"""The submission of an allocation: run directories, and a job with a supervisor on each node."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from resolute.contracts.files.atomic_files import write_json
from resolute.contracts.run.shim_files import STOP
from resolute_engines.configs.requirements import require
from resolute_engines.environment import SupervisorTerms
from resolute_engines.kit.run_directories.container import RunContainer
from resolute_engines.protocol import AllocationSpec
from resolute_engines.slurm.client import JobSpec
from resolute_engines.slurm.containers import ContainerStart, container_of, start_of
from resolute_engines.slurm.settings import SlurmPoolOptions
from resolute_engines.slurm.unsupported_fields import requirements

OUTPUT_FILE = "slurm.log"
"""File of an allocation's folder: what the job itself printed."""
OVERLAYS = ".overlays"
"""Folder beside the runs: what startup hooks have installed."""
SUBMITTED_FILE = "submitted.json"
"""File of an allocation's folder: Slurm has its job, or had it."""

# Ahead of the end of a job's time Slurm tells the script alone (`--signal=B:`). When it preempts a job it
# tells every process that `srun` started, and what trains would die of it: on one node it is therefore no
# step, and a step that does nothing else listens.
_ONE_NODE = """\
#!/bin/sh
trap 'touch {stop}' TERM
srun --overlap --ntasks=1 --input=none sh -c 'trap "touch \\"$1\\"" TERM; sleep 1e9 & wait' listen {stop} &
listener=$!
export SLURM_PROCID=0
{shim} &
shim=$!
while kill -0 $shim 2>/dev/null; do wait $shim; done
kill -KILL $listener 2>/dev/null
exit 0
"""
_SEVERAL_NODES = """\
#!/bin/sh
trap 'touch {stop}' TERM
srun --kill-on-bad-exit=0 --input=none {step}{shim} &
while kill -0 $! 2>/dev/null; do wait $!; done
exit 0
"""
_SHIM = 'exec "$@" "$SLURM_PROCID"'
"""Adds the rank of a node, which is known there only, to the command of its shim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmNodes:
    """The paths and the interpreter on Slurm's nodes."""

    python: str
    """Interpreter of supervisors."""
    runtime: str = ""
    """Directory with what is mounted into images; empty where no pool has containers."""


def prepare(spec: AllocationSpec, *, runs: Path, pool: SlurmPoolOptions, terms: SupervisorTerms) -> None:
    """Makes the run directories of an allocation, unless they are there."""
    for rank in range(len(spec.placements)):
        container = RunContainer(runs, spec.allocation_id, rank)
        container.run.prepare()
        if container.run.launch_file.exists():
            continue
        # What a hook installs into an image is gone with its container.
        overlays = "" if pool.container else str(runs / OVERLAYS)
        order = replace(terms.order(spec, rank, slot_kind=pool.slot_type), overlays=overlays)
        order.write(container.run.launch_file)


def note_submitted(folder: Path, job: int) -> None:
    """Notes that Slurm has the job of an allocation: it forgets jobs some minutes after their end."""
    write_json(folder / SUBMITTED_FILE, {"job": job}, sync=True)


def job_of(
    spec: AllocationSpec, *, name: str, folder: Path, pool: SlurmPoolOptions, nodes: SlurmNodes
) -> JobSpec:
    """The job of an allocation.

    Raises:
        InvalidConfigError: The config asks for what the pool does not do.
    """
    shim = [nodes.python, "-m", "resolute_launch.node", str(folder)]
    start = ContainerStart()
    if container := container_of(spec, pool=pool, folder=str(folder), runtime=nodes.runtime):
        start = start_of(container)
        shim = ["/bin/sh", f"{nodes.runtime}/start.sh", "resolute_launch.node", str(folder)]
    # What starts a container by options of `srun` is a step also on one node.
    script = _ONE_NODE if len(spec.placements) == 1 and not start.step else _SEVERAL_NODES
    return JobSpec(
        name=name,
        script=script.format(
            stop=shlex.quote(str(folder / STOP)),
            step="".join(f"{shlex.quote(option)} " for option in start.step),
            shim=shlex.join(["sh", "-c", _SHIM, "shim", *start.prefix, *shim]),
        ),
        nodes=len(spec.placements),
        output=str(folder / OUTPUT_FILE),
        options=tuple(_options(spec, pool)),
    )


def _options(spec: AllocationSpec, pool: SlurmPoolOptions) -> list[str]:
    # The settings may have changed since the config was taken.
    require(spec.config, requirements(pool, name=spec.pool))
    section: Mapping[str, Any] = spec.config.get("slurm") or {}
    slots = max(map(len, spec.placements))
    options = [*pool.sbatch_args, *(section.get("sbatch_args") or ())]
    if pool.partition:
        options.append(f"--partition={pool.partition}")
    if slots and pool.slot_type == "gpu":
        kind = section.get("gpu_type") or pool.gpu_type
        options.append(f"--gres=gpu:{f'{kind}:' if kind else ''}{slots}")
    elif slots:
        options.append(f"--cpus-per-task={slots}")
    if pool.nice_per_priority is not None:
        options.append(f"--nice={(spec.priority - 1) * pool.nice_per_priority}")
    # A run is started once; what comes after it is another run of the same trial, with another job.
    return [*options, "--no-requeue", f"--signal=B:TERM@{pool.preemption_grace}"]
