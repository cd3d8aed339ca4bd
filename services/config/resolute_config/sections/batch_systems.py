"""The ``slurm`` and ``pbs`` sections: options for the batch systems of clusters."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

from resolute.contracts.documents.section import Name, Positive, Section, Text
from resolute_engines.slurm.sbatch_options import SbatchArg, not_ours

_PBS_OWN = "-C -h -I -J -N -S -V -X -e -k -o -q -r -z"

PbsArg: TypeAlias = Annotated[Name, AfterValidator(not_ours(_PBS_OWN))]


class Slurm(Section):
    """Options for Slurm.

    Attributes:
        slots_per_node: Number of slots to use on each node.
        gpu_type: Kind of GPU to request.
        sbatch_args: Further options of ``sbatch``.
    """

    slots_per_node: Positive | None = None
    # A comma or a colon would begin another resource.
    gpu_type: Annotated[Text, Field(pattern=r"^[A-Za-z0-9._-]*$")] | None = None
    sbatch_args: tuple[SbatchArg, ...] = ()


class Pbs(Section):
    """Options for PBS.

    Attributes:
        slots_per_node: Number of slots to use on each node.
        pbsbatch_args: Further options of ``qsub``.
    """

    slots_per_node: Positive | None = None
    pbsbatch_args: tuple[PbsArg, ...] = ()
