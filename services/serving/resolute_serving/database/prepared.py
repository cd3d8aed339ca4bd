"""Statements that are compiled once, and executed by the driver without SQLAlchemy's work for each execution.

SQLAlchemy's parameters and result objects cost several times as much as SQLite's work for a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Dialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.compiler import SQLCompiler

_LENGTHS = 256
"""Combinations of lengths of lists for which one statement is kept."""
Statement: TypeAlias = sa.Select[Any] | sa.Insert | sa.Update | sa.Delete
Values: TypeAlias = Mapping[str, Any]
_Convert: TypeAlias = Callable[[Any], Any]


class PreparedStatement:
    """A statement with named parameters. A list parameter makes it compile once for each length of the list.

    Args:
        statement: The statement.
        columns: The columns of an insert.
    """

    def __init__(self, statement: Statement, *, columns: Sequence[str] | None = None) -> None:
        self._statement = statement
        self._columns = list(columns) if columns is not None else None
        self._made: dict[str, _Made] = {}
        self._compiled: dict[tuple[str, tuple[int, ...]], _Compiled] = {}

    def all(self, connection: Connection, values: Values) -> list[tuple[Any, ...]]:
        """Runs a query and returns its rows, each with the values of its columns in their order."""
        compiled = self._for(connection.dialect, values)
        with open_cursor(connection, compiled.text) as cursor:
            cursor.execute(compiled.text, compiled.parameters(values))
            return compiled.read(cursor, connection.dialect)

    def first(self, connection: Connection, values: Values) -> tuple[Any, ...] | None:
        """Runs a query that finds one row at most; None when there is none."""
        found = self.all(connection, values)
        return found[0] if found else None

    def mapping(self, connection: Connection, values: Values) -> dict[str, Any] | None:
        """Runs a query that finds one row at most, and returns it by the names of its columns."""
        found = self.first(connection, values)
        return None if found is None else dict(zip(self.names, found, strict=True))

    def run(self, connection: Connection, values: Values) -> int:
        """Runs it with one set of values, and returns how many rows it changed."""
        compiled = self._for(connection.dialect, values)
        with open_cursor(connection, compiled.text) as cursor:
            cursor.execute(compiled.text, compiled.parameters(values))
            return int(cursor.rowcount)

    def run_many(self, connection: Connection, rows: Sequence[Values]) -> None:
        """Runs it with each of some sets of values; at least one."""
        compiled = self._for(connection.dialect, rows[0])
        with open_cursor(connection, compiled.text) as cursor:
            cursor.executemany(compiled.text, [compiled.parameters(row) for row in rows])

    @cached_property
    def names(self) -> Sequence[str]:
        """The names of the columns of a query."""
        assert isinstance(self._statement, sa.Select)
        return self._statement.selected_columns.keys()

    def _for(self, dialect: Dialect, values: Values) -> _Compiled:
        made = self._made.get(dialect.name)
        if made is None:
            made = self._made[dialect.name] = _Made.of(self._statement, dialect, self._columns)
        lengths = tuple([len(values[name]) for name in made.lists])
        compiled = self._compiled.get((dialect.name, lengths))
        if compiled is None:
            if len(self._compiled) >= _LENGTHS:
                self._compiled = {}
            compiled = self._compiled[dialect.name, lengths] = made.compiled(values)
        return compiled


def insert_many(connection: Connection, table: sa.Table, rows: Sequence[Values]) -> None:
    """Inserts rows that name the same columns; at least one."""
    _insert(table, tuple(rows[0])).run_many(connection, rows)


def insert_one(connection: Connection, table: sa.Table, row: Values) -> None:
    """Inserts a row."""
    _insert(table, tuple(row)).run(connection, row)


@lru_cache(maxsize=64)
def _insert(table: sa.Table, columns: tuple[str, ...]) -> PreparedStatement:
    return PreparedStatement(sa.insert(table), columns=columns)


@dataclass(frozen=True)
class _Made:
    """A statement for one database, before its lists have lengths."""

    compiler: SQLCompiler
    dialect: Dialect
    types: Sequence[sa.types.TypeEngine[Any]]
    """Of the columns of its result."""
    lists: Sequence[str]
    """The parameters that expand to lists, and for which there are no values in the statement."""

    @classmethod
    def of(cls, statement: Statement, dialect: Dialect, columns: Sequence[str] | None) -> _Made:
        compiler = statement.compile(dialect=dialect, column_keys=columns)
        assert isinstance(compiler, SQLCompiler)
        types = (
            [column.type for column in statement.selected_columns] if isinstance(statement, sa.Select) else ()
        )
        given = [name for bind, name in compiler.bind_names.items() if bind.expanding and bind.required]
        return cls(compiler, dialect, types, given)

    def compiled(self, values: Values) -> _Compiled:
        """The statement for lists as long as these."""
        binds = {name: bind for bind, name in self.compiler.bind_names.items()}
        constants = {name: bind.effective_value for name, bind in binds.items() if not bind.required}
        state = self.compiler.construct_expanded_state({**constants, **values})
        writers = {
            name: _type(bind.type, self.dialect).bind_processor(self.dialect) for name, bind in binds.items()
        }
        expanded = state.parameter_expansion
        plain = [name for name in binds if name not in expanded]
        return _Compiled(
            text=state.statement,
            names=state.positiontup or [*plain, *(part for parts in expanded.values() for part in parts)],
            positional=self.dialect.positional,
            constants=constants,
            lists=expanded,
            bound={name: write for name, write in writers.items() if write is not None},
            types=self.types,
        )


@dataclass
class _Compiled:
    """A statement compiled for one database."""

    text: str
    names: Sequence[str]
    """Its parameters, in the order of their places where these are not named."""
    positional: bool
    constants: Mapping[str, Any]
    """Parameters that the statement itself has values for."""
    lists: Mapping[str, Sequence[str]]
    """The parameters that stand for the values of a list."""
    bound: Mapping[str, _Convert]
    """How parameters are written that the driver does not take as they are."""
    types: Sequence[sa.types.TypeEngine[Any]]
    """Of the columns of its result."""
    results: Sequence[tuple[int, _Convert]] | None = None
    """How columns are read that the driver does not give as they are; known once it was executed."""

    def parameters(self, values: Values) -> Any:
        """The parameters as the driver takes them."""
        given = {**self.constants, **values}
        for name, write in self.bound.items():
            given[name] = list(map(write, given[name])) if name in self.lists else write(given[name])
        for name, parts in self.lists.items():
            given.update(zip(parts, given[name], strict=True))
        if self.positional:
            return tuple([given[name] for name in self.names])
        return {name: given[name] for name in self.names}

    def read(self, cursor: Any, dialect: Dialect) -> list[tuple[Any, ...]]:
        """The rows of a cursor, as the types of their columns say."""
        if self.results is None:
            # How a number is read depends on what the database sends.
            made = [
                _type(kind, dialect).result_processor(dialect, column[1])
                for kind, column in zip(self.types, cursor.description, strict=True)
            ]
            self.results = [(place, convert) for place, convert in enumerate(made) if convert is not None]
        if not self.results:
            return list(cursor.fetchall())
        read = []
        for row in cursor.fetchall():
            values = list(row)
            for place, convert in self.results:
                values[place] = convert(values[place])
            read.append(tuple(values))
        return read


def _type(kind: sa.types.TypeEngine[Any], dialect: Dialect) -> sa.types.TypeEngine[Any]:
    return kind.dialect_impl(dialect)


@contextmanager
def open_cursor(connection: Connection, text: str) -> Iterator[Any]:
    """A cursor of the driver, whose errors become those of SQLAlchemy."""
    dialect = connection.dialect
    link = connection.connection
    cursor = link.cursor()
    try:
        yield cursor
    except dialect.loaded_dbapi.Error as error:
        broken = dialect.is_disconnect(error, link, cursor)
        if broken:
            connection.invalidate(error)
        raise DBAPIError.instance(
            text,
            None,
            error,
            dialect.loaded_dbapi.Error,
            hide_parameters=True,
            connection_invalidated=broken,
            dialect=dialect,
        ) from error
    finally:
        cursor.close()
