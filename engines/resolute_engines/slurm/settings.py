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
    """An engine of type ``slurm``.

    Attributes:
        directory: Where run directories lie: storage that this machine and all nodes share.
        python: Interpreter on the nodes that has Resolute, as a path that they share.
        runtime: Directory that the nodes share with what is mounted into images; pools of containers want it.
        address: ``host:port`` of the services as the nodes reach them.
        services_certificate: File with the certificates to trust there, as PEM; empty for those of the
            services.
        login: Destination of `ssh` where Slurm's commands are, such as ``user@host``; empty for this machine.
        ssh_config: File with settings of `ssh`; empty for those of the user of the services.
        conf: File that ``SLURM_CONF`` names, where the commands are; empty for Slurm's own choice.
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
    """A pool of such an engine.

    Attributes:
        partition: Slurm's partition; its default one if left out.
        slots_per_node: Slots of each node.
        slot_type: What a slot is.
        gpu_type: Kind of GPU to ask for, such as ``a100``.
        max_slots: Most slots of a trial; as many as the partition's nodes have if left out.
        most_allocations: Most jobs that Slurm is given at a time; what else there is waits here.
        nice_per_priority: By how much the niceness of a job grows with each step of ``resources.priority``
            from 1 on; None for jobs without any.
        preemption_grace: Seconds before the end of a job's time at which it is asked to checkpoint.
        sbatch_args: Further options of ``sbatch`` for every job; those of a config come after them.
        allowed_sbatch_args: Names of options that configs may set beside those about resources, place and
            time, such as ``--mail-user``; ``*`` for all.
        container: What starts a container for each node of a trial; None for bare processes.
        image: Image of trials whose config names none.
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
