"""The options of tables: ``--columns``, ``--sort-by`` and ``--wide``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Protocol, TypeVar

import click

_KEY = "resolute.table"
ItemT = TypeVar("ItemT")


class _Column(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def value(self) -> Callable[[Any], Any]: ...


ColumnT = TypeVar("ColumnT", bound=_Column)


@dataclass(frozen=True)
class TableChoice:
    """The table options of the command line."""

    columns: tuple[str, ...] = ()
    """Names of columns as in CSV; empty for the usual ones."""
    sort_by: str = ""
    """Name of a column, with ":desc" for the greatest first; empty for the usual order."""
    wide: bool = False
    """Whether rows may be wider than the terminal."""

    @classmethod
    def current(cls) -> TableChoice:
        """What the command that runs was given."""
        context = click.get_current_context(silent=True)
        choice = context.meta.get(_KEY) if context is not None else None
        return choice if isinstance(choice, cls) else cls()

    def of_columns(self, columns: Sequence[ColumnT]) -> Sequence[ColumnT]:
        """Picks the wanted columns, in the wanted order."""
        return [_named(columns, name) for name in self.columns] or columns

    def sorted(self, items: Iterable[ItemT], columns: Sequence[_Column]) -> Iterable[ItemT]:
        """Sorts items; those without a value come last."""
        if not self.sort_by:
            return items
        name, _, order = self.sort_by.partition(":")
        read = _named(columns, name).value
        rows = [(read(item), item) for item in items]
        known = sorted((row for row in rows if row[0] is not None), key=lambda row: _order(row[0]))
        if order == "desc":
            known.reverse()
        return [item for _, item in [*known, *(row for row in rows if row[0] is None)]]


def column_key(name: str) -> str:
    """The name of a column for programs."""
    return name.lower().replace(" ", "_")


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options; what prints the table asks for them by itself."""

    @click.option(
        "--columns", "table_columns", default="", metavar="NAME[,NAME...]", help="Only these columns."
    )
    @click.option("--sort-by", "table_sort", default="", metavar="NAME[:desc]", help="Sort by this column.")
    @click.option(
        "--wide", "table_wide", is_flag=True, help="Print whole rows, however wide, with exact times."
    )
    @wraps(command)
    def wrapped(
        *args: Any, table_columns: str = "", table_sort: str = "", table_wide: bool = False, **options: Any
    ) -> Any:
        names = tuple(name.strip() for name in table_columns.split(",") if name.strip())
        click.get_current_context().meta[_KEY] = TableChoice(names, table_sort, table_wide)
        return command(*args, **options)

    return wrapped


def without_table_sort(command: Callable[..., Any]) -> None:
    """Takes ``--sort-by`` away from a command that sorts by fields of its own."""
    parameters: list[click.Parameter] = getattr(command, "__click_params__", [])
    parameters[:] = [parameter for parameter in parameters if parameter.name != "table_sort"]


def _named(columns: Sequence[ColumnT], name: str) -> ColumnT:
    for column in columns:
        if column_key(name) == column_key(column.name):
            return column
    names = ", ".join(column_key(column.name) for column in columns)
    raise click.UsageError(f"There is no column {name!r}; the columns are {names}.")


def _order(value: Any) -> tuple[int, Any]:
    if isinstance(value, (bool, int, float)):
        return (0, float(value))
    return (1, str(getattr(value, "value", value)))
