"""Options of ``sbatch`` that configs and pools may give: all that are not set for every job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeAlias

from pydantic import AfterValidator

from resolute.contracts.documents.rejections import reject
from resolute.contracts.documents.section import Name

_SBATCH_OWN = """
--array -a --chdir -D --dependency -d --error -e --export --gpus -G --gpus-per-node --gpus-per-task --gres
--hold -H --input -i --job-name --j -J --no-requeue --nodes -N --ntasks -n --ntasks-per-node --output -o
--parsable --partition -p --requeue --signal --test-only --wait -W --wrap
"""
_SBATCH_FLAGS = "hIkOQsuvV"
"""Short options without a value: others may follow one in the same argument."""


def not_ours(options: str, *, flags: str = "") -> Callable[[str], str]:
    """Makes a validator of arguments that refuses some options.

    Args:
        options: The options, as they are written.
        flags: Short options without a value: others may follow one in the same argument.
    """
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


SbatchArg: TypeAlias = Annotated[Name, AfterValidator(not_ours(_SBATCH_OWN, flags=_SBATCH_FLAGS))]
