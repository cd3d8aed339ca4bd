"""The ``slurm`` and ``pbs`` sections: options for the batch systems of clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeAlias

from pydantic import AfterValidator

from resolute_experiments.config.validation.rejections import reject
from resolute_experiments.config.validation.section import Name, Positive, Section, Text

_SBATCH_OWN = """
--array -a --chdir -D --dependency -d --error -e --export --gpus -G --gpus-per-node --gpus-per-task --gres
--hold -H --input -i --job-name --j -J --no-requeue --nodes -N --ntasks -n --ntasks-per-node --output -o
--parsable --partition -p --requeue --signal --test-only --wait -W --wrap
"""
_SBATCH_FLAGS = "hIkOQsuvV"
"""Short options without a value: others may follow one in the same argument."""
_PBS_OWN = "-C -h -I -J -N -S -V -X -e -k -o -q -r -z"


def _not_ours(options: str, *, flags: str = "") -> Callable[[str], str]:
    own = frozenset(options.split())

    def check(argument: str) -> str:
        option = argument.split("=", 1)[0].split(" ", 1)[0]
        if option.startswith("--"):
            # The beginning of a long option stands for it, unless it is that of others too: `sbatch` refuses
            # those itself, and a single letter is that of several, but for --j.
            begun = len(option) > len("--j") and any(one.startswith(option) for one in own)
            ours = begun or option in own
        else:
            ours = option[:1] + option[1:].lstrip(flags)[:1] in own
        if ours:
            raise reject("options other than those that are set for every job", problem=f"found {option}")
        return argument

    return check


SbatchArg: TypeAlias = Annotated[Name, AfterValidator(_not_ours(_SBATCH_OWN, flags=_SBATCH_FLAGS))]
PbsArg: TypeAlias = Annotated[Name, AfterValidator(_not_ours(_PBS_OWN))]


class Slurm(Section):
    """Options for Slurm.

    Attributes:
        slots_per_node: Slots to use of each node.
        gpu_type: Kind of GPU to ask for.
        sbatch_args: Further options of ``sbatch``.
    """

    slots_per_node: Positive | None = None
    gpu_type: Text | None = None
    sbatch_args: tuple[SbatchArg, ...] = ()


class Pbs(Section):
    """Options for PBS.

    Attributes:
        slots_per_node: Slots to use of each node.
        pbsbatch_args: Further options of ``qsub``.
    """

    slots_per_node: Positive | None = None
    pbsbatch_args: tuple[PbsArg, ...] = ()
