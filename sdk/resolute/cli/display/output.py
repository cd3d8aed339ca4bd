"""The output of commands: tables for people; JSON, YAML and CSV for programs; all from one description."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from functools import wraps
from typing import IO, TYPE_CHECKING, Any, Generic, TypeVar

import click

from resolute.cli.display.local_time import local_time
from resolute.cli.display.rendering import rendering
from resolute.cli.display.tables.csv_rows import write_rows
from resolute.cli.display.tables.fitted_table import (
    FittedColumn,
    print_fitted,
    relative_time,
    unfitted,
    utc_now,
)
from resolute.cli.display.tables.ruled_table import print_tables
from resolute.cli.display.tables.table_choice import TableChoice, column_key, table_options
from resolute.cli.display.terminal import for_programs, neutralised
from resolute.cli.display.tracebacks import fold_text
from resolute.client.preferences import Preferences
from resolute.client.schema.states import word
from resolute.contracts.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    # Loaded when something is drawn on a terminal: programs that read a table need not wait for it.
    from rich.console import Console
    from rich.table import Table

ItemT = TypeVar("ItemT")
_ROWS_NAMED = 3
_WIDE = 10_000  # columns without a terminal: what reads a pipe wants whole values


class Format(Enum):
    """How a command prints."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


@dataclass(frozen=True)
class Column(Generic[ItemT]):
    """One column of a table."""

    name: str
    """Heading for people; in lower case with underscores, the name in CSV."""
    value: Callable[[ItemT], Any]
    """Takes the value from an item."""
    right: bool = False
    """Whether it is aligned to the right, as numbers are."""
    note: bool = False
    """Whether it is a sentence, which stands below a table that has to fit."""
    kept: bool = False
    """Whether a table that has to fit never leaves it out, nor shortens it."""


def format_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds ``--json`` and ``--csv``, which the command gets as ``output``, and what tables are like."""

    @table_options
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
    @wraps(command)
    def wrapped(*args: Any, as_json: bool, as_csv: bool, **options: Any) -> Any:
        if as_json and as_csv:
            raise click.UsageError("--json and --csv exclude each other.")
        output = Format.JSON if as_json else Format.CSV if as_csv else _preferred()
        return command(*args, output=output, **options)

    return wrapped


def _preferred() -> Format:
    return Format(Preferences.of_home().get("output") or Format.TABLE)


def yaml_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds ``--yaml``; stands below ``format_option``."""

    @click.option("--yaml", "as_yaml", is_flag=True, help="Print YAML.")
    @wraps(command)
    def wrapped(*args: Any, as_yaml: bool, output: Format, **options: Any) -> Any:
        if as_yaml and output is not _preferred():
            raise click.UsageError("--yaml cannot be combined with --json or --csv.")
        return command(*args, output=Format.YAML if as_yaml else output, **options)

    return wrapped


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
"""Adds ``--json`` to commands that print one object, which the command gets as ``as_json``."""


def print_items(
    items: Iterable[ItemT],
    columns: Sequence[Column[ItemT]],
    *,
    output: Format,
    title: str = "",
) -> None:
    """Prints items in the wanted format; as JSON or YAML each with all it has, else by columns.

    Args:
        items: The items.
        columns: The columns of a table or of CSV.
        output: The format.
        title: Stands above a table.
    """
    rendered = rendering()
    if output is Format.JSON:
        print_json(list(items))
    elif output is Format.YAML:
        print_document(list(items), output=output)
    elif rendered is not None and rendered.tables:
        as_csv = output is Format.CSV
        print_tables(rendered, list(items), for_programs() if as_csv else sys.stdout, as_csv=as_csv)
    elif output is Format.CSV:
        write_csv(for_programs(), *_chosen(items, columns))
    else:
        _print_table(items, columns, title=title)


def print_part(items: Sequence[ItemT], columns: Sequence[Column[ItemT]]) -> None:
    """Prints a table below what a command shows, alike under every program; nothing where it has no rows."""
    if items:
        click.echo()
        _print_table(items, columns, title="")


def _print_table(items: Iterable[ItemT], columns: Sequence[Column[ItemT]], *, title: str) -> None:
    choice = TableChoice.current()
    rows, chosen = _chosen(items, columns)
    if not sys.stdout.isatty():
        click.echo(unfitted(_text_columns(rows, chosen), title=neutralised(title)), nl=False)
    elif choice.wide:
        console(wide=True).print(_table(rows, chosen, title=title))
    else:
        _print_fitted(rows, chosen, title=title, in_rows=bool(choice.columns))


def _chosen(
    items: Iterable[ItemT], columns: Sequence[Column[ItemT]]
) -> tuple[Iterable[ItemT], Sequence[Column[ItemT]]]:
    """The rows and the columns that the command line asks for."""
    choice = TableChoice.current()
    return choice.sorted(items, columns), choice.of_columns(columns)


def write_csv(file: IO[str], items: Iterable[ItemT], columns: Sequence[Column[ItemT]]) -> None:
    """Writes items as CSV, with a line of names first."""
    rows = ([_for_csv(column.value(item)) for column in columns] for item in items)
    write_rows(file, [column_key(column.name) for column in columns], rows)


def print_json(value: Any) -> None:
    """Prints a value as JSON."""
    print_document(value, output=Format.JSON)


def print_document(value: Any, *, output: Format) -> None:
    """Prints records as JSON, or else as YAML."""
    rendered = rendering()
    plain = to_plain(value if rendered is None else rendered.document(value))
    if output is Format.JSON:
        click.echo(
            json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False, sort_keys=rendered is not None)
        )
    else:
        print_yaml(plain)


def print_yaml(value: Any) -> None:
    """Prints a value as YAML that reads back as the same value."""
    import yaml

    text = yaml.safe_dump(value, allow_unicode=True)
    # Where a terminal would obey a character, YAML has an escape for it.
    click.echo(text if neutralised(text) == text else yaml.safe_dump(value), nl=False)


def print_fields(facts: Iterable[tuple[str, Any]]) -> None:
    """Prints names and values below each other; empty values are left out."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        if value not in (None, "", [], {}, ()):
            table.add_row(name, _cell(value))
    console().print(table)


def current_time() -> datetime:
    """The moment that times are shown relative to."""
    return utc_now(SYSTEM_CLOCK.time())


def console(*, wide: bool = False) -> Console:
    """The terminal; as wide as needed with ``wide``, and when the output goes elsewhere."""
    from rich.console import Console

    fits = sys.stdout.isatty() and not wide
    return Console(soft_wrap=False, highlight=False, width=None if fits else _WIDE)


def to_plain(value: Any) -> Any:
    """Turns records into what JSON can say; numbers that it cannot say become their names."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return word(value)
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def format_value(value: Any) -> str:
    """Writes a value for people."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, datetime):
        return local_time(value)
    if isinstance(value, Enum):
        return word(value)
    if isinstance(value, (list, tuple)):
        return ", ".join(format_value(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}={_nested(item)}" for key, item in value.items())
    return str(value)


def _nested(value: Any) -> str:
    return f"{{{format_value(value)}}}" if isinstance(value, dict) else format_value(value)


def _for_csv(value: Any) -> Any:
    value = to_plain(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value


def _cell(value: Any) -> str:
    from rich.markup import escape

    return escape(neutralised(format_value(value)))


def _print_fitted(
    items: Iterable[ItemT], columns: Sequence[Column[ItemT]], *, title: str, in_rows: bool
) -> None:
    from rich.markup import escape

    rows, terminal = list(items), console()
    now = current_time()
    if title:
        terminal.print(escape(neutralised(title)), style="bold", soft_wrap=True)
    fitted = [_fitted(column, rows, now) for column in columns if in_rows or not column.note]
    notes = [
        (_plain(columns[0].value(item)), neutralised(column.name), text)
        for item in rows
        for column in columns
        if column.note and not in_rows and (text := neutralised(format_value(column.value(item))))
    ]
    print_fitted(terminal, fitted, notes=notes_of(columns[0].name, notes))


def notes_of(kind: str, notes: Iterable[tuple[str, str, str]]) -> list[str]:
    """Writes the remarks on rows below a table: a remark on several rows once, tracebacks folded.

    Args:
        kind: What a row is, such as ``Run``.
        notes: Of each text, its row, its column and the text itself.
    """
    rows: dict[tuple[str, str], list[str]] = {}
    for row, column, text in notes:
        rows.setdefault((column, text), []).append(row)
    return [
        f"{kind} {_named(names)}: {column.lower()}: {fold_text(text)}"
        for (column, text), names in rows.items()
    ]


def _named(rows: Sequence[str]) -> str:
    shown = ", ".join(rows[:_ROWS_NAMED])
    return shown if len(rows) <= _ROWS_NAMED else f"{shown} and {len(rows) - _ROWS_NAMED} more"


def _fitted(column: Column[ItemT], rows: Sequence[ItemT], now: datetime) -> FittedColumn:
    values = [column.value(item) for item in rows]
    texts = [
        relative_time(value, now) if isinstance(value, datetime) else "" if value is False else _plain(value)
        for value in values
    ]
    whole = column.right or column.kept or any(isinstance(value, (datetime, Enum, bool)) for value in values)
    return FittedColumn(neutralised(column.name), texts, right=column.right, whole=whole, kept=column.kept)


def _plain(value: Any) -> str:
    return neutralised(format_value(value)).replace("\n", " ")


def _text_columns(items: Iterable[ItemT], columns: Sequence[Column[ItemT]]) -> list[FittedColumn]:
    rows = list(items)
    return [
        FittedColumn(
            neutralised(column.name),
            [neutralised(format_value(column.value(item))) for item in rows],
            right=column.right,
        )
        for column in columns
    ]


def _table(items: Iterable[ItemT], columns: Sequence[Column[ItemT]], *, title: str) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table(
        title=escape(neutralised(title)) or None,
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
    )
    for column in columns:
        table.add_column(
            escape(neutralised(column.name)),
            justify="right" if column.right else "left",
            header_style="bold",
            overflow="fold",
        )
    for item in items:
        table.add_row(*(_cell(column.value(item)) for column in columns))
    return table
