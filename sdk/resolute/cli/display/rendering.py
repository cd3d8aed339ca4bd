"""The form of a command's result for scripts that were written for another program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

_KEY = "resolute.renderings"


@dataclass(frozen=True)
class Heading:
    """One column of a table."""

    name: str
    value: Callable[[Any], Any]
    """Takes the cell from a row."""
    when: str = ""
    """The parameter of the command without which the column is left out; empty for none."""


@dataclass(frozen=True)
class Table:
    """One table of a result."""

    headings: Sequence[Heading] | Callable[[Sequence[Any]], Sequence[Heading]]
    """The columns, or what takes them from the rows."""
    rows: Callable[[Any], Iterable[Any]] = list
    """Takes the rows from what the command prints."""
    title: str = ""
    """Stands above the table, in CSV too; empty for none."""


@dataclass(frozen=True)
class Rendering:
    """The result of one command as JSON and YAML, and as tables and CSV."""

    document: Callable[[Any], Any]
    """Makes what JSON and YAML say of what the command prints."""
    tables: Sequence[Table] = ()
    """Empty where the command prints its own."""


Renderings = Mapping[str, Rendering]
"""By the words of the command, such as ``experiment list``."""


def use_renderings(context: click.Context, load: Callable[[], Renderings]) -> None:
    """Lets the command that a context runs look as another program's does.

    Args:
        context: Of the program.
        load: Gives the renderings; called when something is printed.
    """
    context.meta[_KEY] = load


def rendering() -> Rendering | None:
    """The rendering of the command that runs; None for its own."""
    context = click.get_current_context(silent=True)
    load = context.meta.get(_KEY) if context is not None else None
    return load().get(_words(context)) if context is not None and load is not None else None


def _words(context: click.Context) -> str:
    names = list[str]()
    step: click.Context | None = context
    while step is not None and step.parent is not None:
        names.insert(0, step.info_name or "")
        step = step.parent
    return " ".join(names)
