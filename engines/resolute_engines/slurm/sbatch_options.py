"""The options of ``sbatch`` that configs and pools may set."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator

from resolute.contracts.documents.rejections import reject
from resolute.contracts.documents.section import Name
from resolute.errors import Violation

EVERY_OPTION = "*"
"""Entry of a pool's list that lets configs set everything but what every job has."""
_SBATCH_OWN = """
--array -a --chdir -D --dependency -d --error -e --export --gpus -G --gpus-per-node --gpus-per-task --gres
--hold -H --input -i --job-name --j -J --no-requeue --nodes -N --ntasks -n --ntasks-per-node --output -o
--parsable --partition -p --requeue --signal --test-only --wait -W --wrap
"""
_SBATCH_FLAGS = "hIkOQsuvV"
"""Short options without a value: others may follow one in the same argument."""
_WITH_VALUE = """
--account --qos --wckey --time --time-min --begin --deadline --delay-boot --reservation --licenses --comment
--mem --mem-per-cpu --mem-per-gpu --tmp --mincpus --cpus-per-task --cpus-per-gpu --ntasks-per-core
--ntasks-per-socket --constraint --prefer --exclude --nodelist --switches --distribution --hint
--threads-per-core --cores-per-socket --sockets-per-node --extra-node-info --core-spec --thread-spec
--gres-flags --gpu-bind --gpu-freq --cpu-freq --mem-bind --acctg-freq
-A -q -t -b -L -c -C -x -w -m -B -S
"""
"""Options about resources, place and time; without a value one would take the next argument for it."""
_WITHOUT_VALUE = "--contiguous --overcommit --spread-job --use-min-nodes --quiet --verbose -Q -O -v"
_OPTIONAL_VALUE = "--exclusive --nice --get-user-env --oversubscribe --no-kill -s -k"
_OF_NODES = "--exclude --nodelist -x -w"
"""Options whose value names a file, which is read, where it has a slash."""
_OPTION = re.compile(r"(?P<name>--[a-z][a-z-]*)(?:=(?P<value>.*))?", re.DOTALL)
_SHORT = re.compile(r"(?P<flags>-[QOvsk]*)(?P<letter>[A-Za-z])?[ =]?(?P<value>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class SbatchAccess:
    """The options of ``sbatch`` that configs may set in a pool: those about resources, place and time.

    Other options submit as another user or to another cluster, run a file, or use permissions of the
    services' user in Slurm.
    """

    pool: str
    """The pool, for messages."""
    listed: tuple[str, ...] = ()
    """Further options that the operator lists, by the names that configs write."""

    def faults(self, config: Mapping[str, Any]) -> Iterator[Violation]:
        """What is wrong with each argument of ``slurm.sbatch_args``."""
        if EVERY_OPTION in self.listed:
            return
        for index, argument in enumerate((config.get("slurm") or {}).get("sbatch_args") or ()):
            if problem := self._problem(argument):
                yield Violation(f"slurm.sbatch_args[{index}]", problem)

    def _problem(self, argument: str) -> str:
        if not argument.startswith("-"):
            return f"found {argument!r}; sbatch runs a word as a file: write an option as --name=value"
        name, value = _parsed(argument)
        if name in self.listed:
            return ""
        if name in _WITH_VALUE.split():
            if not value:
                return f"found {argument!r}; write {name} and its value in one argument, such as --time=60"
            if name in _OF_NODES.split() and "/" in value:
                return f"found {argument!r}; {name} takes names of nodes here, and no file"
            return ""
        if name in _OPTIONAL_VALUE.split() or (name in _WITHOUT_VALUE.split() and value is None):
            return ""
        return (
            f"found {argument!r}; pool {self.pool!r} lets configs set options about resources, place and "
            f"time: leave it out, or let the operator add {name} to allowed_sbatch_args of the pool"
        )


def _parsed(argument: str) -> tuple[str, str | None]:
    """The option of an argument, and its value; an argument of another form is its own name."""
    if option := _OPTION.fullmatch(argument):
        return option["name"], option["value"]
    short = None if argument.startswith("--") else _SHORT.fullmatch(argument)
    if short is None:
        return argument, None
    if short["letter"] is None:
        return (argument if short["value"] else argument[:2]), None
    return f"-{short['letter']}", short["value"] or None


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
            begun = len(option) > len("--j") and any(name.startswith(option) for name in own)
            ours = begun or option in own
        else:
            ours = option[:1] + option[1:].lstrip(flags)[:1] in own
        if ours:
            raise reject("options other than those that are set for every job", problem=f"found {option}")
        return argument

    return check


SbatchArg: TypeAlias = Annotated[Name, AfterValidator(not_ours(_SBATCH_OWN, flags=_SBATCH_FLAGS))]
