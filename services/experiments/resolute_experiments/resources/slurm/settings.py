"""What the settings of resource pools say of an engine of type ``slurm`` and of its pools."""

from __future__ import annotations

import shlex
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator

from resolute_experiments.config.sections.batch_systems import SbatchArg
from resolute_experiments.config.validation.rejections import reject
from resolute_experiments.config.validation.section import Name, Positive, Section, Text

ContainerKind: TypeAlias = Literal["apptainer", "enroot", "pyxis"]
"""What starts containers on the nodes."""


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise reject("an absolute path")
    return path


class SlurmEngine(Section):
    """An engine of type ``slurm``.

    Attributes:
        directory: Where run directories lie: storage that this machine and all nodes share.
        python: Interpreter on the nodes that has Resolute, as a path that they share.
        runtime: Directory that the nodes share with what is mounted into images; pools of containers want it.
        address: ``host:port`` of the services as the nodes reach them.
        login: Command that goes before Slurm's commands, such as ``ssh login``.
        conf: File that ``SLURM_CONF`` names; empty for Slurm's own choice.
    """

    directory: Annotated[Text, AfterValidator(_absolute)]
    python: Text | None = None
    runtime: Text = ""
    address: Text | None = None
    login: Text = ""
    conf: Text = ""

    @property
    def prefix(self) -> tuple[str, ...]:
        """The words of ``login``."""
        return tuple(shlex.split(self.login))


class SlurmPool(Section):
    """A pool of such an engine.

    Attributes:
        partition: Slurm's partition; its default one if left out.
        slots_per_node: Slots of each node.
        slot_type: What a slot is.
        gpu_type: Kind of GPU to ask for, such as ``a100``.
        max_slots: Most slots of a trial; as many as the partition's nodes have if left out.
        preemption_grace: Seconds before the end of a job's time at which it is asked to checkpoint.
        sbatch_args: Further options of ``sbatch`` for every job; those of a config come after them.
        container: What starts a container for each node of a trial; None for bare processes.
        image: Image of trials whose config names none.
        container_args: Further options of ``apptainer exec`` or ``enroot start``, or of Pyxis for ``srun``.
    """

    partition: Name | None = None
    slots_per_node: Positive = 1
    slot_type: Literal["cpu", "gpu"] = "gpu"
    gpu_type: Text | None = None
    max_slots: Positive | None = None
    preemption_grace: Positive = 120
    sbatch_args: tuple[SbatchArg, ...] = ()
    container: ContainerKind | None = None
    image: Text = ""
    container_args: tuple[Name, ...] = ()
