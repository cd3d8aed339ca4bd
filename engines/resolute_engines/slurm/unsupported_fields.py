"""The support of config fields in Slurm pools."""

from __future__ import annotations

from resolute_engines.configs.requirements import ConfigRule, Requirement
from resolute_engines.configs.unsupported_fields import (
    STARTS_COLD,
    UnsupportedField,
    no_node_excluded,
    queued_by,
)
from resolute_engines.slurm.containers import SUPPORTED_FIELDS as CONTAINER_FIELDS
from resolute_engines.slurm.sbatch_options import SbatchAccess
from resolute_engines.slurm.settings import SlurmPoolOptions


def supported_fields(pool: SlurmPoolOptions) -> frozenset[str]:
    """Fields that have an effect there, of those that have none for processes of this machine."""
    return frozenset({"slurm"}) | (CONTAINER_FIELDS if pool.container else frozenset())


def unsupported_fields(pool: SlurmPoolOptions) -> tuple[UnsupportedField, ...]:
    """Fields that have no effect there, of those that have one for processes of this machine."""
    passed_on = {"nice_per_priority": pool.nice_per_priority is not None}
    return (STARTS_COLD, *queued_by("Slurm", passed_on=passed_on))


def requirements(pool: SlurmPoolOptions, *, name: str) -> tuple[ConfigRule, ...]:
    """What configs must be there.

    Args:
        pool: Settings of the pool.
        name: Its name.
    """
    size = Requirement(
        path="slurm.slots_per_node",
        allowed=(pool.slots_per_node,),
        reason=(
            f"pool {name!r} gives {pool.slots_per_node} slots of each node: remove it, or choose another pool"
        ),
    )
    no_gpu = Requirement(
        path="slurm.gpu_type",
        reason=f"the slots of pool {name!r} are processors: remove it, or choose a pool of GPUs",
    )
    nodes = no_node_excluded("Slurm", instead="name nodes to avoid by --exclude in slurm.sbatch_args")
    options = SbatchAccess(pool=name, listed=pool.allowed_sbatch_args)
    return (size, nodes, options, no_gpu) if pool.slot_type == "cpu" else (size, nodes, options)
