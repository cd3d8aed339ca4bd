"""Rows as CSV that spreadsheets show literally: no cell becomes a formula."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import IO, Any

_BEGINNINGS_OF_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def write_rows(file: IO[str], header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Writes a line of names, then rows.

    Args:
        file: Where to.
        header: The names.
        rows: The cells. A text that a spreadsheet would calculate gets an apostrophe in front, which OWASP
            advises against CSV injection; numbers stay as they are.
    """
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([_guarded(name) for name in header])
    for row in rows:
        writer.writerow([_guarded(cell) for cell in row])


def _guarded(cell: Any) -> Any:
    if not isinstance(cell, str) or not cell.startswith(_BEGINNINGS_OF_FORMULAS):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
