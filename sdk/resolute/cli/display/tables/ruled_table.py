"""The tables of renderings: as CSV, or as text with bars between the columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, Any

import click
from rich.cells import cell_len

from resolute.cli.display.rendering import Rendering, Table
from resolute.cli.display.tables.csv_rows import write_rows
from resolute.cli.display.tables.table_choice import TableChoice
from resolute.cli.display.terminal import neutralised


def print_tables(rendered: Rendering, value: Any, file: IO[str], *, as_csv: bool) -> None:
    """Prints the tables of a result.

    Args:
        rendered: The rendering.
        value: What the command prints.
        file: Where to.
        as_csv: Whether as CSV, and not as text with lines between the columns.
    """
    for table in rendered.tables:
        names, cells = cells_of(table, value)
        if table.title:
            click.echo(table.title, file=file)
        if as_csv:
            write_rows(file, names, cells)
        else:
            click.echo(ruled(names, cells), file=file)


def cells_of(table: Table, value: Any) -> tuple[list[str], list[list[Any]]]:
    """The names of the columns that are wanted, and the cells of each row."""
    choice, context = TableChoice.current(), click.get_current_context()
    rows = list(table.rows(value))
    all_headings = table.headings(rows) if callable(table.headings) else table.headings
    shown = [heading for heading in all_headings if not heading.when or context.params.get(heading.when)]
    headings = choice.of_columns(shown)
    cells = [[column.value(row) for column in headings] for row in choice.sorted(rows, shown)]
    return [heading.name for heading in headings], cells


def ruled(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Lays a table out with a bar between its columns and a rule below their names.

    Cells of several lines take as many; columns of numbers are aligned to the right.
    """
    columns = [[row[index] for row in rows] for index in range(len(names))]
    texts = [
        [_lines(name)] + [_lines(cell) for cell in cells] for name, cells in zip(names, columns, strict=True)
    ]
    widths = [max(cell_len(line) for lines in cells for line in lines) for cells in texts]
    right = [bool(cells) and all(map(_is_number, cells)) for cells in columns]
    drawn = []
    for number in range(len(rows) + 1):
        height = max((len(cells[number]) for cells in texts), default=1)
        for line in range(height):
            parts = [cells[number][line] if line < len(cells[number]) else "" for cells in texts]
            drawn.append("|".join(map(_padded, parts, widths, right)).rstrip())
        if number == 0:
            drawn.append("+".join("-" * (width + 2) for width in widths))
    return "\n".join(drawn)


def _lines(cell: Any) -> list[str]:
    text = "" if cell is None else f"{cell:g}" if isinstance(cell, float) else str(cell)
    return [neutralised(line) for line in text.split("\n")]


def _is_number(cell: Any) -> bool:
    return cell is None or (isinstance(cell, (int, float)) and not isinstance(cell, bool))


def _padded(text: str, width: int, right: bool) -> str:
    gap = " " * (width - cell_len(text))
    return f" {gap}{text} " if right else f" {text}{gap} "
