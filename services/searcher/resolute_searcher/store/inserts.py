"""Rows on their shortest way into a table: the statement is made once, rows go to the driver as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Dialect
from sqlalchemy.sql.compiler import SQLCompiler


def insert_many(connection: Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Inserts rows that name the same columns, with values that the driver takes as they are.

    Building a statement and its parameters costs several times what the database does for a row.

    Args:
        connection: A transaction.
        table: Where they go.
        rows: The rows, each by column; at least one.
    """
    compiled = _compiled(table, tuple(rows[0]), connection.dialect)
    parameters: list[Any] = [dict(row) for row in rows]
    if compiled.positiontup is not None:
        parameters = [tuple(row[name] for name in compiled.positiontup) for row in rows]
    connection.exec_driver_sql(compiled.string, parameters)


@lru_cache(maxsize=64)
def _compiled(table: sa.Table, columns: tuple[str, ...], dialect: Dialect) -> SQLCompiler:
    statement = sa.insert(table).compile(dialect=dialect, column_keys=list(columns))
    assert isinstance(statement, SQLCompiler)
    return statement
