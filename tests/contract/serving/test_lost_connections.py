"""A read goes on by a new connection when the server has closed the one that it would have used."""

from __future__ import annotations

import asyncio

import sqlalchemy as sa
from contract.serving.databases import open_database
from sqlalchemy.engine import Connection
from support.databases.postgres import PostgresServer

METADATA = sa.MetaData()
NAMES = sa.Table("names", METADATA, sa.Column("name", sa.String(10), primary_key=True))
OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
)


def add(connection: Connection) -> None:
    connection.execute(NAMES.insert().values(name="one"))


def names(connection: Connection) -> list[str]:
    return list(connection.execute(sa.select(NAMES.c.name)).scalars())


def end_others(connection: Connection) -> None:
    connection.execute(sa.text(OTHERS))


def test_reads_and_writes_outlive_their_connections(postgres_server: PostgresServer) -> None:
    async def scenario() -> None:
        with open_database(postgres_server.new_database(), METADATA) as database:
            await database.write(add)
            # Each of the four threads that read has a connection by then.
            await asyncio.gather(*(database.read(names) for _ in range(8)))
            await database.write(end_others)
            rows = await asyncio.gather(*(database.read(names) for _ in range(8)))
            assert rows == [["one"]] * 8
            await database.read(end_others)
            assert await database.write(names) == ["one"]

    asyncio.run(scenario())
