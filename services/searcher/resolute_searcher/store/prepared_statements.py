"""Prepared statements: compiled once, with values passed directly to the driver.

Building a statement and its parameters costs several times what the database does for a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, CursorResult, Dialect
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import ClauseElement


class PreparedStatement:
    """A statement with named parameters, for values that the driver takes as they are.

    Args:
        statement: The statement; no parameter of it expands.
        columns: The columns of an insert.
    """

    def __init__(self, statement: ClauseElement, *, columns: Sequence[str] | None = None) -> None:
        self._statement = statement
        self._columns = list(columns) if columns is not None else None
        self._compiled: dict[str, SQLCompiler] = {}

    def execute(self, connection: Connection, values: Mapping[str, Any]) -> CursorResult[Any]:
        """Runs it with one set of values."""
        compiled = self._for(connection.dialect)
        return connection.exec_driver_sql(compiled.string, _parameters(compiled, values))

    def execute_many(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Runs it with each of some sets of values; at least one."""
        compiled = self._for(connection.dialect)
        connection.exec_driver_sql(compiled.string, [_parameters(compiled, row) for row in rows])

    def _for(self, dialect: Dialect) -> SQLCompiler:
        compiled = self._compiled.get(dialect.name)
        if compiled is None:
            made = self._statement.compile(dialect=dialect, column_keys=self._columns)
            assert isinstance(made, SQLCompiler)
            compiled = self._compiled[dialect.name] = made
        return compiled


def insert_many(connection: Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Inserts rows that name the same columns; at least one."""
    _insert(table, tuple(rows[0])).execute_many(connection, rows)


@lru_cache(maxsize=64)
def _insert(table: sa.Table, columns: tuple[str, ...]) -> PreparedStatement:
    return PreparedStatement(sa.insert(table), columns=columns)


def _parameters(compiled: SQLCompiler, values: Mapping[str, Any]) -> Any:
    if compiled.positiontup is None:
        return dict(values)
    return tuple(values[name] for name in compiled.positiontup)
