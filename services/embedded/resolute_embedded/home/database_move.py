"""Moves the databases of a home from SQLite files into PostgreSQL."""

from __future__ import annotations

import hashlib
import importlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from resolute.errors import FailedPreconditionError, InvalidArgumentError, ResoluteError
from resolute_embedded.blueprints import BLUEPRINTS
from resolute_embedded.home.identity import require_original
from resolute_embedded.home.read_only import open_read_only
from resolute_embedded.home.state_directory import StateDirectory
from resolute_serving.database.engine import create_engine
from resolute_serving.database.migrations import newest_revision
from resolute_serving.server.bootstrap import upgrade
from resolute_serving.server.service import Blueprint

_OWNERS = tuple(blueprint for blueprint in BLUEPRINTS if blueprint.package)
"""The services that have a database."""
_VERSION = "alembic_version"
_READ_ROWS = 1000


def move(state: StateDirectory, url: str) -> Mapping[str, int]:
    """Copies the databases of a home that nothing serves into PostgreSQL, and has it served from there.

    All services are copied in one transaction. It may be interrupted anywhere and repeated: until it is
    done, the home has its files and the database nothing. The files are set aside, and not used any more.

    Args:
        state: The home.
        url: A PostgreSQL database without schemas of the services.

    Returns:
        How many rows each service has.

    Raises:
        FailedPreconditionError: The home holds no cluster, is being served, or was moved before; or the
            database holds something else, or cannot hold a row. Nothing was changed.
        InvalidArgumentError: The URL is not one of PostgreSQL.
    """
    parsed = postgresql_url(url)
    if not state.databases.exist or not state.cluster_id.path.exists():
        raise FailedPreconditionError(
            f"{state.home.path} holds no cluster; let RESOLUTE_HOME name the one to move"
        )
    lock = state.lock
    lock.acquire()
    try:
        require_original(state)
        if state.databases.are_moved:
            # Of a move that was killed after its note.
            state.databases.set_files_aside()
            raise FailedPreconditionError(f"the databases of {state.home.path} are in PostgreSQL already")
        for blueprint in _OWNERS:
            upgrade(blueprint, state.databases.url(blueprint.name))
        counts = _copy(state, parsed)
        state.databases.move_to(parsed.render_as_string(hide_password=False))
        state.databases.set_files_aside()
        return counts
    finally:
        lock.release()


def postgresql_url(url: str) -> URL:
    """Reads the URL of a database, with the driver that services use.

    Raises:
        InvalidArgumentError: It is not one of PostgreSQL.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        parsed = None
    if parsed is None or parsed.get_backend_name() != "postgresql":
        raise InvalidArgumentError(
            "the URL of the database must be postgresql://USER@HOST/DATABASE; libpq finds the password in "
            "~/.pgpass if it is not in the URL"
        )
    return parsed.set(drivername="postgresql+psycopg")


def _copy(state: StateDirectory, url: URL) -> Mapping[str, int]:
    mark = f"moved from {state.cluster_id.get()} as {_fingerprint(state)}"
    engine = create_engine(url.render_as_string(hide_password=False), name="public", writes=True)
    try:
        with engine.begin() as connection:
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(hashtext('resolute.move'))"))
            if _mark(connection) != mark:
                _require_empty(connection)
                for blueprint in _OWNERS:
                    _copy_service(connection, blueprint, state.databases.files / f"{blueprint.name}.sqlite")
                connection.exec_driver_sql(f"COMMENT ON SCHEMA \"{_OWNERS[0].name}\" IS '{mark}'")
            # Also of a move that had been interrupted after its commit.
            return {blueprint.name: _verified(connection, blueprint, state) for blueprint in _OWNERS}
    except DBAPIError as error:
        raise FailedPreconditionError(
            f"the databases could not be moved, and nothing was: {str(error.orig).strip()}"
        ) from error
    finally:
        engine.dispose()


def _fingerprint(state: StateDirectory) -> str:
    """Tells what the files of the home hold: it differs once the home was served again."""
    digest = hashlib.sha256()
    for blueprint in _OWNERS:
        for suffix in ("", "-wal"):
            path = state.databases.files / f"{blueprint.name}.sqlite{suffix}"
            if path.exists():
                with path.open("rb") as file:
                    while block := file.read(1 << 20):
                        digest.update(block)
    return digest.hexdigest()


def _mark(connection: Connection) -> str:
    """What an earlier move noted in the database; empty for none."""
    query = sa.text("SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = :name")
    return connection.execute(query, {"name": _OWNERS[0].name}).scalar() or ""


def _require_empty(connection: Connection) -> None:
    query = sa.text("SELECT DISTINCT schemaname FROM pg_tables WHERE schemaname = ANY(:names) ORDER BY 1")
    names = [blueprint.name for blueprint in _OWNERS]
    if taken := list(connection.execute(query, {"names": names}).scalars()):
        raise FailedPreconditionError(
            f"the database has tables already, in schema {', '.join(taken)}; name one that is empty, or "
            "drop these schemas if what they hold is not needed"
        )


def _copy_service(connection: Connection, blueprint: Blueprint, source: Path) -> None:
    name = blueprint.name
    connection.exec_driver_sql(f'CREATE SCHEMA IF NOT EXISTS "{name}"')
    connection.exec_driver_sql(f'SET LOCAL search_path = "{name}"')
    importlib.import_module(f"{blueprint.package}.migrations.initial").create(connection)
    connection.exec_driver_sql(
        f"CREATE TABLE {_VERSION} "
        "(version_num VARCHAR(32), CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
    )
    tables = _tables(connection, name)
    with closing(open_read_only(source)) as rows:
        for table in reversed(tables):
            connection.execute(sa.delete(table))
        for table in tables:
            _copy_table(connection, table, rows)


def _tables(connection: Connection, schema: str) -> Sequence[sa.Table]:
    """The tables of a service as they are in PostgreSQL, those first to which others refer."""
    found = sa.MetaData()
    found.reflect(connection, schema=schema)
    return found.sorted_tables


def _copy_table(connection: Connection, table: sa.Table, source: sqlite3.Connection) -> None:
    columns = ", ".join(f'"{column.name}"' for column in table.columns)
    flags = [isinstance(column.type, sa.Boolean) for column in table.columns]
    link: Any = connection.connection.driver_connection
    try:
        with (
            link.cursor() as cursor,
            cursor.copy(f'COPY "{table.schema}"."{table.name}" ({columns}) FROM STDIN') as copy,
        ):
            for row in _rows(source, f'SELECT {columns} FROM "{table.name}"'):  # noqa: S608 - our own names
                # All else is the same in both: JSON as its text, times as numbers.
                copy.write_row(
                    [
                        bool(value) if flag and value is not None else value
                        for value, flag in zip(row, flags, strict=True)
                    ]
                )
    except psycopg.Error as error:
        # Nothing can be rolled back over a connection that is lost; the server does it when this one ends.
        connection.invalidate(error)
        raise FailedPreconditionError(
            f"{table.schema}.{table.name} could not be moved, and nothing was: "
            f"{' '.join(str(error).split())}; mend that, and repeat the move"
        ) from error
    key = table.autoincrement_column
    if key is not None:
        _continue_numbers(connection, table, key, source)


def _rows(source: sqlite3.Connection, query: str) -> Iterator[tuple[Any, ...]]:
    cursor = source.execute(query)
    while rows := cursor.fetchmany(_READ_ROWS):
        yield from rows


def _continue_numbers(
    connection: Connection, table: sa.Table, key: sa.Column[Any], source: sqlite3.Connection
) -> None:
    """Lets new rows get numbers that no row ever had, also of those that were deleted."""
    owned = sa.text("SELECT pg_get_serial_sequence(:table, :column)")
    name = f'"{table.schema}"."{table.name}"'
    sequence = connection.execute(owned, {"table": name, "column": key.name}).scalar()
    (latest,) = source.execute(f'SELECT max("{key.name}") FROM "{table.name}"').fetchone()  # noqa: S608 - our own names
    if source.execute("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'").fetchone():
        known = source.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table.name,)).fetchone()
        latest = max(latest or 0, known[0] if known else 0)
    if sequence is not None and latest:
        connection.execute(
            sa.text("SELECT setval(:sequence, :latest)"), {"sequence": sequence, "latest": latest}
        )


def _verified(connection: Connection, blueprint: Blueprint, state: StateDirectory) -> int:
    """Counts the rows of a service.

    Raises:
        ResoluteError: A table has not all rows of the file, or the file has another table.
    """
    total = 0
    with closing(open_read_only(state.databases.files / f"{blueprint.name}.sqlite")) as source:
        listed = source.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
        names, tables = {name for (name,) in listed}, _tables(connection, blueprint.name)
        if names != {table.name for table in tables}:
            raise ResoluteError(
                f"the file of {blueprint.name} has other tables than {newest_revision(blueprint.package)}"
            )
        for table in tables:
            (there,) = source.execute(f'SELECT count(*) FROM "{table.name}"').fetchone()  # noqa: S608 - our own names
            here = connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            if here != there:
                raise ResoluteError(
                    f"{blueprint.name}.{table.name} has {here} rows of {there}; nothing was moved"
                )
            total += here
    return total
