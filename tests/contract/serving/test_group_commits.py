"""Replicas that commit in groups: their transactions never wait for each other in a circle."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from support.databases.postgres import PostgresServer

from resolute_serving.database.engine import Database

_ROWS = ("a", "b")
_MEETING_SECONDS = 1.0
TABLE = sa.Table(
    "counters",
    sa.MetaData(),
    sa.Column("name", sa.String(10), primary_key=True),
    sa.Column("value", sa.Integer),
)


@contextmanager
def _replicas(url: str) -> Iterator[tuple[Database, Database]]:
    one, other = Database(url, name="test"), Database(url, name="test")
    try:
        with one.engine.begin() as connection:
            connection.execute(sa.text("CREATE SCHEMA test"))
            TABLE.metadata.create_all(connection)
            connection.execute(TABLE.insert(), [{"name": name, "value": 0} for name in _ROWS])
        yield one, other
    finally:
        one.close()
        other.close()


@pytest.mark.integration
def test_work_that_arrives_in_opposite_orders_is_committed_by_both_replicas(
    postgres_server: PostgresServer,
) -> None:
    began = threading.Barrier(3)
    holding = {"one": threading.Event(), "other": threading.Event()}

    def wait(_: Connection) -> None:
        began.wait(30)

    def raise_counter(connection: Connection, row: str, mine: str, its: str) -> None:
        connection.execute(TABLE.update().where(TABLE.c.name == row).values(value=TABLE.c.value + 1))
        # Each replica holds its first row until the other has one too, if the other can get any.
        holding[mine].set()
        holding[its].wait(_MEETING_SECONDS)

    async def scenario(one: Database, other: Database) -> None:
        loop = asyncio.get_running_loop()
        waiting = [asyncio.ensure_future(replica.write(wait)) for replica in (one, other)]
        work = [
            asyncio.ensure_future(
                replica.write(partial(raise_counter, row=row, mine=mine, its=its), order=row)
            )
            for replica, mine, its, rows in (
                (one, "one", "other", _ROWS),
                (other, "other", "one", _ROWS[::-1]),
            )
            for row in rows
        ]
        await asyncio.sleep(0)
        await loop.run_in_executor(None, began.wait, 30)
        await asyncio.wait_for(asyncio.gather(*waiting, *work), 60)

    with _replicas(postgres_server.clean_database()) as (one, other):
        asyncio.run(scenario(one, other))
        with one.engine.connect() as connection:
            found = {row.name: row.value for row in connection.execute(sa.select(TABLE))}
    assert found == {"a": 2, "b": 2}
