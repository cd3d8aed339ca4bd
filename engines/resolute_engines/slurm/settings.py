"""Settings of an engine of type ``slurm`` and of its pools."""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field

from resolute.contracts.documents.rejections import reject
from resolute.contracts.documents.section import Name, Positive, Section, SmallCount, Text
from resolute_engines.protocol import MOST_ALLOCATIONS
from resolute_engines.slurm.sbatch_options import SbatchArg

ContainerKind: TypeAlias = Literal["apptainer", "enroot", "pyxis"]
"""What starts containers on the nodes."""
MOST_NICE_PER_PRIORITY = 20_000_000
"""Slurm takes a niceness of up to 2147483645, and priorities go up to 99."""
_DESTINATION = re.compile(r"[^-\s/]\S*")
"""No option, no command of several words and no path."""


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise reject("an absolute path")
    return path


def _destination(text: str) -> str:
    if text and not _DESTINATION.fullmatch(text):
        raise reject("a destination of ssh, such as user@login.example or a Host of ssh_config")
    return text


class SlurmEngineOptions(Section):
    """Options of an engine of type ``slurm``.

    Attributes:
        directory: Directory for run directories, on storage that this machine and all nodes share.
        python: Path of the interpreter that has Resolute, on storage that the nodes share.
        runtime: Directory with the runtime, on storage that the nodes share. It is mounted into images; pools
            with containers need it.
        address: ``host:port`` at which the nodes reach the services.
        services_certificate: PEM file with the certificates to trust at that address; empty for those of the
            services.
        login: Destination of `ssh` on which Slurm's commands run, such as ``user@host``; empty for this
            machine.
        ssh_config: File with settings of `ssh`; empty for those of the services' user.
        conf: Value of ``SLURM_CONF`` for the commands; empty for Slurm's default.
    """

    directory: Annotated[Text, AfterValidator(_absolute)]
    python: Text | None = None
    runtime: Text = ""
    address: Text | None = None
    services_certificate: Text = ""
    login: Annotated[Text, AfterValidator(_destination)] = ""
    ssh_config: Text = ""
    conf: Text = ""


class SlurmPoolOptions(Section):
    """Options of a pool of such an engine.

    Attributes:
        partition: Slurm's partition; the default is Slurm's default partition.
        slots_per_node: Slots of each node.
        slot_type: Kind of a slot.
        gpu_type: Kind of GPU to request, such as ``a100``.
        max_slots: Most slots of a trial; the default is the number of slots of the partition's nodes.
        most_allocations: Most jobs that are submitted to Slurm at one time; others wait in the queue of the
            cluster.
        nice_per_priority: Increase of a job's niceness with each step of ``resources.priority`` from 1 on;
            None for jobs without niceness.
        preemption_grace: Seconds before a job's time limit at which it is asked to checkpoint.
        sbatch_args: Further options of ``sbatch`` for every job. Options of a config follow them.
        allowed_sbatch_args: Names of options that configs may set beside those about resources, place and
            time, such as ``--mail-user``; ``*`` for all.
        container: Container runtime for each node of a trial; None for processes without containers.
        image: Default image of trials.
        container_args: Further options of ``apptainer exec`` or ``enroot start``, or of Pyxis for ``srun``.
    """

    partition: Name | None = None
    slots_per_node: Positive = 1
    slot_type: Literal["cpu", "gpu"] = "gpu"
    gpu_type: Text | None = None
    max_slots: Positive | None = None
    most_allocations: Annotated[SmallCount, Field(ge=1)] = MOST_ALLOCATIONS
    nice_per_priority: Annotated[Positive, Field(le=MOST_NICE_PER_PRIORITY)] | None = None
    preemption_grace: Positive = 120
    sbatch_args: tuple[SbatchArg, ...] = ()
    allowed_sbatch_args: tuple[SbatchArg, ...] = ()
    container: ContainerKind | None = None
    image: Text = ""
    container_args: tuple[Name, ...] = ()
