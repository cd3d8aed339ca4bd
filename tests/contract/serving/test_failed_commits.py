"""A commit that the database refuses ends its own work alone."""

from __future__ import annotations

import asyncio

import pytest
import sqlalchemy as sa
from contract.serving.databases import open_database
from sqlalchemy.engine import Connection

from resolute.errors import ConflictError

METADATA = sa.MetaData()
HOLDERS = sa.Table("holders", METADATA, sa.Column("name", sa.String(10), primary_key=True))
HELD = sa.Table(
    "held",
    METADATA,
    # Looked at when it is committed: the statement itself succeeds.
    sa.Column(
        "holder",
        sa.String(10),
        sa.ForeignKey("holders.name", deferrable=True, initially="DEFERRED"),
        primary_key=True,
    ),
)


def hold(connection: Connection) -> None:
    connection.execute(HELD.insert().values(holder="missing"))


def add(connection: Connection) -> None:
    connection.execute(HOLDERS.insert().values(name="one"))


def names(connection: Connection) -> list[str]:
    return list(connection.execute(sa.select(HOLDERS.c.name)).scalars())


def test_the_next_work_is_committed(database_url: str) -> None:
    async def scenario() -> None:
        with open_database(database_url, METADATA) as database:
            for _ in range(2):
                with pytest.raises(ConflictError):
                    await database.write(hold)
            await database.write(add)
            assert await database.read(names) == ["one"]

    asyncio.run(scenario())
