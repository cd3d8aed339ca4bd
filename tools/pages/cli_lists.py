"""Writes what each documented command does here into docs/from-determined.md; ``--check`` compares."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parents[1]))

from determined_names.cli_differences import DIFFERENCES
from generated_section import GeneratedSection

from resolute.cli.main import cli
from resolute.cli.registry.counterparts import COUNTERPARTS
from resolute.cli.registry.lazy import LazyGroup
from resolute.cli.registry.refused_options import REFUSED_OPTIONS

NAMES = Path(__file__).parents[1] / "determined_names/cli_names.txt"
SECTION = GeneratedSection(
    "docs/from-determined.md",
    "<!-- command line: written by tools/pages/cli_lists.py -->",
    "<!-- end of command line -->",
    remedy="tools/pages/cli_lists.py",
)


class Support(Enum):
    """What becomes of a documented name."""

    SAME = "same"
    DIFFERENT = "different"
    REFUSED = "refused"


_SUMMARY = {
    Support.SAME: "are the same",
    Support.DIFFERENT: "differ",
    Support.REFUSED: "are refused",
}


@dataclass(frozen=True)
class Documented:
    """A command of the documented command line."""

    words: tuple[tuple[str, ...], ...]
    """Each word of the path, with its aliases."""
    options: tuple[tuple[str, ...], ...]
    """The names of each option; one with a value ends in "="."""
    arguments: tuple[str, ...]

    @property
    def path(self) -> str:
        """The command by its full names."""
        return " ".join(names[0] for names in self.words)


@dataclass(frozen=True)
class Item:
    """A documented command or option and whether it is supported."""

    path: str
    options: tuple[str, ...]
    """The names of the option; empty for the command itself."""
    support: Support
    text: str
    """How it differs, or what to use instead."""


def documented() -> list[Documented]:
    """Reads the names of all versions; a command whose options differ between versions is there twice."""
    lines = [line for line in NAMES.read_text().splitlines() if not line.startswith("#")]
    commands = []
    for line in lines:
        _, path, options, arguments = (*(part.strip() for part in line.split(";")), "", "")[:4]
        commands.append(
            Documented(
                tuple(tuple(word.split("|")) for word in path.split()),
                tuple(tuple(option.split("|")) for option in options.split()),
                tuple(arguments.split()),
            )
        )
    return commands


def command_of(one: Documented) -> click.Command | None:
    """Finds the command here; None if one of its words, or of their aliases, is none."""
    command: click.Command = cli
    for names in one.words:
        if names == ("help",):
            return command
        entries = command.entries() if isinstance(command, LazyGroup) else ()
        entry = next((entry for entry in entries if set(names) <= {entry.name, *entry.aliases}), None)
        if entry is None:
            return None
        command = entry.load()
    return command


def counterpart(one: Documented) -> str:
    """What to use instead of a command that is refused; empty if there is none."""
    for length, names in enumerate(one.words):
        group = " ".join(parent[0] for parent in one.words[:length])
        words = COUNTERPARTS.get(group, {})
        if all(name in words for name in names):
            return words[names[0]]
    return ""


def documented_items() -> Iterator[Item]:
    """Tells of each documented command and option what becomes of it.

    Raises:
        LookupError: Nothing is known of one.
    """
    seen = set()
    for one in documented():
        command = command_of(one)
        instead = "" if command is not None else counterpart(one)
        if command is None and not instead:
            raise LookupError(f"there is no row for `det {one.path}`: add it, or what to use instead")
        for item in _items(one, command, instead):
            if (item.path, item.options) not in seen:
                seen.add((item.path, item.options))
                yield item


def _items(one: Documented, command: click.Command | None, instead: str) -> Iterator[Item]:
    yield _item(one.path, (), Support.REFUSED if command is None else Support.SAME, instead)
    known = {} if command is None else {name: p for p in command.params for name in p.opts}
    refused = REFUSED_OPTIONS.get(one.path, {})
    for option in one.options:
        names = tuple(name.rstrip("=") for name in option)
        if command is None:
            yield _item(one.path, names, Support.REFUSED, instead)
        elif all(name in known for name in names):
            yield _item(one.path, names, Support.SAME, "")
        elif all(name in refused for name in names):
            yield _item(one.path, names, Support.REFUSED, refused[names[0]])
        else:
            raise LookupError(
                f"there is no row for `det {one.path} {names[0]}`: add it, or why it is refused"
            )


def _item(path: str, options: tuple[str, ...], support: Support, text: str) -> Item:
    for name in options or ("",):
        how = DIFFERENCES.get(f"{path} {name}".strip())
        if how and support is Support.SAME:
            return Item(path, options, Support.DIFFERENT, how)
    return Item(path, options, support, text)


def lists() -> str:
    """The three lists as they stand in the page."""
    items = sorted(documented_items(), key=lambda item: (item.path, item.options))
    counts = {
        support: (
            sum(item.support is support and not item.options for item in items),
            sum(item.support is support and bool(item.options) for item in items),
        )
        for support in Support
    }
    summary = "; ".join(
        f"{commands} commands and {options} options {_SUMMARY[support]}"
        for support, (commands, options) in counts.items()
    )
    return "\n".join(
        [
            f"Of the commands of 0.30 and 0.38: {summary}.",
            "",
            "### Different",
            "",
            "| command | how |",
            "|---|---|",
            *(f"| {_name(item)} | {item.text} |" for item in items if item.support is Support.DIFFERENT),
            "",
            "### Refused",
            "",
            "These say so, with what to use instead. The options of a refused command are refused with it.",
            "",
            "| command | instead |",
            "|---|---|",
            *_refused(items),
            "",
            "### The same",
            "",
            "| command | options |",
            "|---|---|",
            *_same(items),
        ]
    )


def _name(item: Item) -> str:
    names = f" {', '.join(item.options)}" if item.options else ""
    return f"`det {item.path}{names}`"


def _refused(items: list[Item]) -> Iterator[str]:
    whole = {item.path for item in items if item.support is Support.REFUSED and not item.options}
    by_text: dict[str, list[str]] = {}
    for item in items:
        inner = bool(item.options) and item.path in whole
        if item.support is Support.REFUSED and not inner and not item.path.endswith(" help"):
            by_text.setdefault(item.text, []).append(_name(item))
    for text, names in by_text.items():
        yield f"| {', '.join(names)} | {text} |"


def _same(items: list[Item]) -> Iterator[str]:
    options: dict[str, list[str]] = {}
    for item in items:
        if item.support is Support.SAME and item.path != "help" and not item.path.endswith(" help"):
            options.setdefault(item.path, []).extend([", ".join(item.options)] if item.options else [])
    for path, names in options.items():
        yield f"| `det {path}` | {'; '.join(f'`{name}`' for name in names)} |"


def main() -> None:
    """Writes or compares."""
    SECTION.update(lists())


if __name__ == "__main__":
    main()
