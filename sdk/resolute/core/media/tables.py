"""Tables as JSON."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any


def table_content(table: Any, columns: Sequence[str] | None) -> bytes:
    """Returns a table as JSON: ``columns`` and ``rows``.

    Args:
        table: A data frame of pandas; a mapping from columns to lists; a list of mappings; or, with
            ``columns``, a list of rows.
        columns: Names of the columns; of the first three kinds they choose and order them.

    Raises:
        TypeError: It is none of these.
        ValueError: Rows have no names for their columns, a column is missing, or columns have different
            lengths.
    """
    if hasattr(table, "columns") and hasattr(table, "itertuples"):
        names = [str(name) for name in table.columns]
        rows: list[Sequence[Any]] = [tuple(row) for row in table.itertuples(index=False, name=None)]
        return _chosen(names, rows, columns)
    if isinstance(table, Mapping):
        lists = [list(values) for values in table.values()]
        return _chosen([str(name) for name in table], list(zip(*lists, strict=True)), columns)
    rows = list(table)
    mappings = [row for row in rows if isinstance(row, Mapping)]
    if rows and len(mappings) == len(rows):
        names = list(columns or dict.fromkeys(name for row in mappings for name in row))
        return _written(names, [[row.get(name) for name in names] for row in mappings])
    if columns is None:
        raise ValueError("its columns have no names; give columns=[...]")
    return _written(list(columns), rows)


def _chosen(names: Sequence[str], rows: Sequence[Sequence[Any]], columns: Sequence[str] | None) -> bytes:
    if columns is None:
        return _written(names, rows)
    wanted = [str(name) for name in columns]
    if missing := [name for name in wanted if name not in names]:
        raise ValueError(f"it has no column {missing[0]!r}; choose among {', '.join(names)}")
    places = [names.index(name) for name in wanted]
    return _written(columns, [[row[place] for place in places] for row in rows])


def _written(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> bytes:
    values = [[_plain(value) for value in row] for row in rows]
    plain = {"columns": [str(name) for name in columns], "rows": values}
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def _plain(value: Any) -> Any:
    """A value that JSON has; numbers that it has not, and objects, as text."""
    if hasattr(value, "item"):
        with contextlib.suppress(Exception):  # what has several elements is no single value
            value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, (str, int)) else str(value)
