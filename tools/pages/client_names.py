"""Lists what the Python client shares with determined's, in docs/from-determined.md; ``--check`` compares.

The names are in ``tests/wire/client/documented_names.txt``, what differs in ``differences.yaml`` beside it. A
test makes sure that the names without a difference are the same.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).parents[1]))

from generated_section import ROOT, GeneratedSection

DATA = ROOT / "tests/wire/client"
SECTION = GeneratedSection(
    "docs/from-determined.md",
    "<!-- client: written by tools/pages/client_names.py -->",
    "<!-- end of client -->",
    remedy="make proto",
)
_STAND_FOR = {"Determined": "", "ExperimentReference": "Experiment.", "TrialReference": "Trial."}
"""Classes whose members are listed under another name: the functions, and the classes they are names of."""


@dataclass(frozen=True)
class Name:
    """A documented name."""

    name: str
    """Such as ``get_trial`` or ``Trial.kill``."""
    kind: str
    """``attribute``, ``member``, or the parameters in parentheses."""
    since_038: bool
    """Whether 0.30 lacks it."""

    @property
    def owner(self) -> str:
        """Its class; empty for a function."""
        return self.name.rpartition(".")[0]

    @property
    def parameters(self) -> list[str]:
        """Names of its parameters, those with a default ending in "="."""
        return [word for word in self.kind.strip("()").split(", ") if word]


@dataclass(frozen=True)
class Lists:
    """All documented names."""

    same: list[Name]
    different: dict[Name, str]
    """How they differ."""
    refused: dict[Name, str]
    """What to use instead."""


def read() -> Lists:
    """Reads the names and the differences."""
    differences = yaml.safe_load((DATA / "differences.yaml").read_text())
    lists, used = Lists([], {}, {}), set()
    for name in _names():
        for group, named in (("different", lists.different), ("refused", lists.refused)):
            if key := _key(name, differences[group]):
                named[name] = differences[group][key]
                used.add(key)
                break
        else:
            lists.same.append(name)
    unused = {*differences["different"], *differences["refused"]} - used
    if unused:
        sys.exit(f"differences.yaml names what is not documented: {', '.join(sorted(unused))}")
    return lists


def table() -> str:
    """The three lists in Markdown."""
    return "\n".join(_lines(read()))


def _names() -> Iterator[Name]:
    for line in (DATA / "documented_names.txt").read_text().splitlines():
        if not line.startswith("#"):
            name, _, kind = line.partition(" ")
            yield Name(name, kind.removesuffix(" +"), kind.endswith(" +"))


def _key(name: Name, differences: Mapping[str, str]) -> str:
    """The key of the difference of a name; empty if there is none."""
    last = name.name.rpartition(".")[2]
    keys = [name.name, name.owner]
    if name.owner in _STAND_FOR:
        keys.append(_STAND_FOR[name.owner] + last)
    return next((key for key in keys if key in differences), "")


def _lines(lists: Lists) -> Iterator[str]:
    counts = [len(one) for one in (lists.same, lists.different, lists.refused)]
    yield (
        f"Of {sum(counts)} names of 0.30 and 0.38, {counts[0]} are the same, {counts[1]} differ and "
        f"{counts[2]} are refused: calling them tells what to use instead."
    )
    yield "\n**The same:**\n"
    by_owner: dict[str, list[str]] = {}
    for name in lists.same:
        by_owner.setdefault(name.owner, []).append(name.name.rpartition(".")[2])
    for owner, members in by_owner.items():
        yield f"- {f'`{owner}`' if owner else 'functions'}: {', '.join(f'`{member}`' for member in members)}"
    for title, named in (("different", lists.different), ("refused", lists.refused)):
        yield f"\n| {title} | {'how' if title == 'different' else 'instead'} |\n|---|---|"
        by_text: dict[str, list[str]] = {}
        for name, text in named.items():
            by_text.setdefault(text, []).append(f"`{name.name}`")
        for text, names in by_text.items():
            yield f"| {', '.join(names)} | {text} |"


def main() -> None:
    """Writes or compares."""
    SECTION.update(f"{table()}\n")


if __name__ == "__main__":
    main()
