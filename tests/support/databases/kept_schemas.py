"""Schemas of PostgreSQL that one test leaves to the next, without their rows: to make one takes long.

A schema is kept only while it is as it was made: whatever a test changes of it but rows makes it anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

Link = psycopg.Connection[Any]

_ASIDE = "aside_"
"""What the names of schemas begin with that wait for the next test."""
_LARGEST = 1 << 20
"""Bytes of a schema that is kept: what a test has filled leaves room that the next one would search."""
_STATE = """
WITH tables AS (
  SELECT oid, xmin, reltuples, relkind FROM pg_class WHERE relnamespace = %(schema)s::regnamespace
),
changes AS (
  SELECT xmin FROM tables
  UNION ALL SELECT xmin FROM pg_attribute WHERE attrelid IN (SELECT oid FROM tables)
  UNION ALL SELECT xmin FROM pg_attrdef WHERE adrelid IN (SELECT oid FROM tables)
  UNION ALL SELECT xmin FROM pg_trigger WHERE tgrelid IN (SELECT oid FROM tables)
  UNION ALL SELECT xmin FROM pg_constraint WHERE connamespace = %(schema)s::regnamespace
  UNION ALL SELECT xmin FROM pg_proc WHERE pronamespace = %(schema)s::regnamespace
  UNION ALL SELECT xmin FROM pg_statistic WHERE starelid IN (SELECT oid FROM tables)
)
SELECT concat_ws(' ', count(*), max(xmin::text::bigint), (SELECT sum(reltuples) FROM tables)),
  (SELECT sum(pg_relation_size(oid)) FROM tables WHERE relkind = 'r') FROM changes
"""
"""When a schema was changed last, how much there is of it, and what is known of its rows; its bytes."""
_DELETE = """
DO $$ DECLARE found regclass; BEGIN
  FOR found IN SELECT oid FROM pg_class WHERE relnamespace = '{schema}'::regnamespace AND relkind = 'r' LOOP
    EXECUTE 'LOCK TABLE ' || found || ' IN ACCESS EXCLUSIVE MODE';
    EXECUTE 'DELETE FROM ' || found;
  END LOOP;
END $$
"""
_WITHOUT_TRIGGERS = "SET LOCAL session_replication_role = replica"


@dataclass(frozen=True)
class _Made:
    state: str
    rows: str
    """Statements that bring the rows of a new schema, and its sequences, into an empty one."""


_made: dict[tuple[int, str, str], _Made] = {}
"""By the server's port, the database and the schema."""


def note(link: Link, schema: str, *, script: str) -> None:
    """Takes note of a schema that has just been made by a script of pg_dump, so that it can be kept.

    Args:
        link: A connection to its database.
        schema: Its name.
        script: What makes it, with a row in each INSERT.
    """
    lines = script.splitlines()
    rows = [line for line in lines if line.startswith(("INSERT INTO ", "SELECT pg_catalog.setval("))]
    assert all(line.endswith(");") for line in rows), "a value has several lines"
    _made[_key(link, schema)] = _Made(_state(link, schema)[0], "\n".join(rows))


def put_aside(link: Link, schema: str) -> bool:
    """Keeps a schema for the next test, without its rows; tells whether it does.

    Args:
        link: A connection to its database, with a timeout of locks: whoever holds a table is found out.
        schema: Its name.
    """
    if schema.startswith(_ASIDE):
        return True
    made = _made.get(_key(link, schema))
    if made is None:
        return False
    state, size = _state(link, schema)
    if state != made.state or size > _LARGEST:
        return False
    with link.transaction():
        link.execute(_WITHOUT_TRIGGERS)
        link.execute(sql.SQL(_DELETE.replace("{schema}", schema)))
        link.execute(_renaming(schema, _ASIDE + schema))
    return True


def take(link: Link, schema: str) -> bool:
    """Makes a schema that was put aside as if it were new; tells whether there was one."""
    made = _made.get(_key(link, schema))
    query = "SELECT FROM pg_namespace WHERE nspname = %s"
    if made is None or link.execute(query, [_ASIDE + schema]).rowcount == 0:
        return False
    with link.transaction():
        link.execute(_renaming(_ASIDE + schema, schema))
        link.execute(_WITHOUT_TRIGGERS)
        link.execute(made.rows.encode())
    return True


def _key(link: Link, schema: str) -> tuple[int, str, str]:
    return link.info.port, link.info.dbname, schema


def _state(link: Link, schema: str) -> tuple[str, int]:
    state, size = link.execute(_STATE, {"schema": schema}).fetchall()[0]
    return str(state), int(size or 0)


def _renaming(old: str, new: str) -> sql.Composed:
    return sql.SQL("ALTER SCHEMA {} RENAME TO {}").format(sql.Identifier(old), sql.Identifier(new))
