"""Work that looks again and again reads only what may have changed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_serving.database.engine import Database
from resolute_serving.database.remembered import Remembered


def test_a_read_is_repeated_once_something_was_committed(tmp_path: Path) -> None:
    async def scenario() -> None:
        database = Database(f"sqlite:///{tmp_path}/some.db", name="some")
        reads: list[int] = []

        def count(connection: Connection) -> int:
            reads.append(1)
            return int(connection.execute(sa.text("SELECT count(*) FROM numbers")).scalar_one())

        def insert(connection: Connection) -> Any:
            connection.execute(sa.text("INSERT INTO numbers VALUES (1)"))

        await database.write(lambda c: c.execute(sa.text("CREATE TABLE numbers (number INTEGER)")))
        remembered = Remembered(database, count)
        assert [await remembered.get() for _ in range(3)] == [0, 0, 0]
        assert len(reads) == 1
        await database.write(insert)
        assert [await remembered.get() for _ in range(3)] == [1, 1, 1]
        assert len(reads) == 2
        database.close()

    asyncio.run(scenario())


def test_where_others_write_too_every_call_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        database = Database(f"sqlite:///{tmp_path}/some.db", name="some")
        monkeypatch.setattr(database, "commits", None)
        numbers = iter(range(3))
        remembered = Remembered(database, lambda _: next(numbers))
        assert [await remembered.get() for _ in range(3)] == [0, 1, 2]
        database.close()

    asyncio.run(scenario())
