"""Tables that fit the terminal: rows do not wrap, long texts go below the table, hidden columns are named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

if TYPE_CHECKING:
    from rich.console import Console

_GAP = 2
_NARROWEST = 8
"""A text that is shortened keeps at least these cells, its ellipsis included."""
_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


@dataclass
class FittedColumn:
    """A column with its cells as text."""

    name: str
    cells: list[str] = field(default_factory=list)
    right: bool = False
    whole: bool = False
    """Whether its cells are never shortened: numbers, states, times, UUIDs."""
    kept: bool = False
    """Whether it is never left out."""

    @property
    def width(self) -> int:
        """Cells of the terminal that it takes."""
        return max(cell_len(text) for text in (self.name, *self.cells))


def print_fitted(console: Console, columns: Sequence[FittedColumn], *, notes: Sequence[str]) -> None:
    """Prints a table within the width of the terminal, and the remarks on its rows below.

    Args:
        console: The terminal.
        columns: The columns; those without any value are left out.
        notes: Lines in full width.
    """
    from rich.text import Text

    filled = [column for column in columns if any(column.cells)]
    shown, omitted = _fit(filled or columns, console.width)
    widths = [column.width for column in shown]
    heading = _line([column.name for column in shown], shown, widths)
    console.print(Text(heading, style="bold"), soft_wrap=True)
    lines = [_line(cells, shown, widths) for cells in zip(*(column.cells for column in shown), strict=True)]
    if lines:
        # At once: each call of `print` costs as much as many lines.
        console.print(Text("\n".join(lines)), soft_wrap=True)
    for note in notes:
        console.print(Text(note), soft_wrap=True)
    if omitted:
        console.print(
            Text(f"(left out: {', '.join(omitted)}; --wide shows all)", style="dim"), soft_wrap=True
        )


def unfitted(columns: Sequence[FittedColumn], *, title: str) -> str:
    """Lays a table out as text that is as wide as its values. Values of several lines take as many.

    Args:
        columns: The columns.
        title: Stands above the table; empty for none.
    """
    split = [[text.expandtabs().split("\n") for text in (column.name, *column.cells)] for column in columns]
    widths = [max(cell_len(line) for lines in cells for line in lines) for cells in split]
    rows = [
        _line(cells, columns, widths)
        for row in zip(*split, strict=True)
        for cells in zip_longest(*row, fillvalue="")
    ]
    return "".join(f"{line}\n" for line in ([title] if title else []) + rows)


def relative_time(moment: datetime, now: datetime) -> str:
    """Writes how long ago something was, in one unit."""
    if moment.tzinfo is None:
        moment = moment.astimezone()
    seconds = (now - moment).total_seconds()
    if abs(seconds) < 1:
        return "now"
    return f"{span(seconds)} ago" if seconds > 0 else f"in {span(-seconds)}"


def span(seconds: float) -> str:
    """Writes how long something takes, in one unit."""
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), _UNITS[-1])
    return f"{int(max(seconds, 0) // size)} {unit}"


def utc_now(time: float) -> datetime:
    """Turns the time of a clock into a moment."""
    return datetime.fromtimestamp(time, timezone.utc)


def _fit(columns: Sequence[FittedColumn], room: int) -> tuple[list[FittedColumn], list[str]]:
    """Shortens texts, widest first, then leaves columns out from the right."""
    shown, omitted = list(columns), list[str]()
    while _total(shown) > room:
        texts = [
            column
            for column in shown
            if not column.whole and column.width > max(_NARROWEST, len(column.name))
        ]
        if texts:
            widest = max(texts, key=lambda one: one.width)
            least = max(_NARROWEST, len(widest.name))
            _shorten(widest, max(least, widest.width - (_total(shown) - room)))
            continue
        spare = [column for column in shown[1:] if not column.kept]
        if not spare:
            break  # a terminal too narrow for the least that can be shown
        shown.remove(spare[-1])
        omitted.insert(0, spare[-1].name)
    return shown, omitted


def _shorten(column: FittedColumn, width: int) -> None:
    column.cells = [
        text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"
        for text in column.cells
    ]


def _total(columns: Sequence[FittedColumn]) -> int:
    return sum(column.width for column in columns) + _GAP * (len(columns) - 1)


def _line(cells: Sequence[str], columns: Sequence[FittedColumn], widths: Sequence[int]) -> str:
    padded = [
        " " * (width - cell_len(text)) + text if column.right else text + " " * (width - cell_len(text))
        for text, column, width in zip(cells, columns, widths, strict=True)
    ]
    return (" " * _GAP).join(padded).rstrip()
