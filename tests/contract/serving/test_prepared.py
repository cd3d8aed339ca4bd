"""Prepared statements give what SQLAlchemy's execution gives, and fail as it does."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
import sqlalchemy as sa
from contract.serving.databases import open_database
from sqlalchemy.engine import Connection

from resolute.errors import ConflictError
from resolute_serving.database.engine import insert_new
from resolute_serving.database.prepared import PreparedStatement, insert_many, insert_one

METADATA = sa.MetaData()
THINGS = sa.Table(
    "things",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("content", sa.JSON),
    sa.Column("flag", sa.Boolean),
    sa.Column("value", sa.Float),
    sa.Column("data", sa.LargeBinary),
)
ROWS: list[dict[str, Any]] = [
    {
        "number": 1,
        "name": "one",
        "content": {"a": [1, 2.5, None]},
        "flag": True,
        "value": 0.5,
        "data": b"\0\xff",
    },
    {"number": 2, "name": "two", "content": [], "flag": False, "value": math.inf, "data": b""},
    {"number": 3, "name": "ö%s:x?", "content": "text", "flag": None, "value": None, "data": None},
]
# A constant of the statement's own, a parameter that occurs twice, and one that is declared with a value.
QUERY = (
    sa.select(THINGS, sa.func.coalesce(THINGS.c.value, -1.0).label("known"))
    .where(
        sa.or_(THINGS.c.name == sa.bindparam("name"), THINGS.c.name == sa.bindparam("other", "two")),
        sa.bindparam("name", type_=sa.Text) != "never",
    )
    .order_by(THINGS.c.number)
)


def both(connection: Connection, **values: Any) -> tuple[list[Any], list[Any]]:
    return PreparedStatement(QUERY).all(connection, values), [
        tuple(row) for row in connection.execute(QUERY, values)
    ]


def test_rows_are_those_of_sqlalchemy(database_url: str) -> None:
    def work(connection: Connection) -> None:
        insert_one(connection, THINGS, ROWS[0])
        insert_many(connection, THINGS, ROWS[1:])
        stored = [dict(row) for row in connection.execute(sa.select(THINGS).order_by("number")).mappings()]
        assert stored == ROWS
        for values in ({"name": "one"}, {"name": "one", "other": "ö%s:x?"}, {"name": "never"}, {"name": "?"}):
            prepared, usual = both(connection, **values)
            assert prepared == usual
        known = PreparedStatement(sa.select(THINGS).where(THINGS.c.number == sa.bindparam("which")))
        assert known.mapping(connection, {"which": 3}) == ROWS[2]
        assert known.mapping(connection, {"which": 4}) is None

    run(database_url, work)


def test_lists_of_any_length_are_taken(database_url: str) -> None:
    chosen = sa.select(THINGS.c.name).where(
        THINGS.c.number.in_(sa.bindparam("numbers", expanding=True)),
        THINGS.c.name.in_(["one", "two", "three"]),
        THINGS.c.name != sa.bindparam("but"),
    )
    prepared = PreparedStatement(chosen.order_by(THINGS.c.number))

    def work(connection: Connection) -> None:
        insert_many(connection, THINGS, ROWS)
        for _ in range(2):
            assert prepared.all(connection, {"numbers": [], "but": ""}) == []
            assert prepared.all(connection, {"numbers": [2], "but": ""}) == [("two",)]
            assert prepared.all(connection, {"but": "", "numbers": [1, 2, 3]}) == [("one",), ("two",)]
            assert prepared.all(connection, {"but": "one", "numbers": [3, 1]}) == []

    run(database_url, work)


def test_changes_tell_how_many_rows_they_changed(database_url: str) -> None:
    change = PreparedStatement(
        sa.update(THINGS).where(THINGS.c.number >= sa.bindparam("least")).values(content=sa.bindparam("new"))
    )

    def work(connection: Connection) -> None:
        insert_many(connection, THINGS, ROWS)
        assert change.run(connection, {"least": 2, "new": {"b": True}}) == 2
        assert change.run(connection, {"least": 9, "new": None}) == 0
        contents = connection.execute(sa.select(THINGS.c.content).order_by(THINGS.c.number)).scalars().all()
        assert contents == [ROWS[0]["content"], {"b": True}, {"b": True}]
        assert insert_new(connection, THINGS, {**ROWS[0], "number": 7}) is False
        assert insert_new(connection, THINGS, {**ROWS[0], "number": 7, "name": "seven"}) is True

    run(database_url, work)


def test_errors_are_those_of_the_platform(database_url: str) -> None:
    def twice(connection: Connection) -> None:
        insert_one(connection, THINGS, ROWS[0])
        insert_one(connection, THINGS, {**ROWS[0], "number": 2})

    with pytest.raises(ConflictError):
        run(database_url, twice)


def run(url: str, work: Any) -> None:
    async def scenario() -> None:
        with open_database(url, METADATA) as database:
            await database.write(work)

    asyncio.run(scenario())
