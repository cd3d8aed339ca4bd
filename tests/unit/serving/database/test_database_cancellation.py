from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import UnavailableError
from resolute_serving.database.engine import Database

TABLE = sa.Table("marks", sa.MetaData(), sa.Column("mark", sa.Text))


def insert(mark: str) -> sa.Insert:
    return sa.insert(TABLE).values(mark=mark)


def test_callers_that_go_away_leave_the_writer_alive(tmp_path: Path) -> None:
    entered, release = threading.Event(), threading.Event()

    def slow(connection: Connection) -> None:
        entered.set()
        assert release.wait(60)
        connection.execute(insert("running"))

    async def scenario(database: Database) -> list[str]:
        await database.write(TABLE.metadata.create_all)
        running = asyncio.ensure_future(database.write(slow))
        assert await asyncio.to_thread(entered.wait, 10)
        waiting = asyncio.ensure_future(database.write(lambda c: c.execute(insert("waiting"))))
        await asyncio.sleep(0)
        running.cancel()
        waiting.cancel()
        await asyncio.gather(running, waiting, return_exceptions=True)
        release.set()
        await asyncio.wait_for(database.write(lambda c: c.execute(insert("later"))), 60)
        return await database.read(lambda c: list(c.execute(sa.select(TABLE.c.mark)).scalars()))

    database = Database(f"sqlite:///{tmp_path / 'marks.sqlite'}", name="marks")
    try:
        # What had begun is kept, what nobody waits for any more is not begun.
        assert asyncio.run(scenario(database)) == ["running", "later"]
    finally:
        release.set()
        database.close()


def test_a_closed_database_refuses_work_instead_of_letting_it_wait(tmp_path: Path) -> None:
    async def scenario(database: Database) -> None:
        database.close()
        with pytest.raises(UnavailableError, match="marks service stops"):
            await asyncio.wait_for(database.write(TABLE.metadata.create_all), 60)
        with pytest.raises(UnavailableError, match="marks service stops"):
            await asyncio.wait_for(database.read(lambda c: c.execute(sa.select(1))), 60)

    asyncio.run(scenario(Database(f"sqlite:///{tmp_path / 'marks.sqlite'}", name="marks")))


def store(connection: Connection) -> None:
    connection.execute(insert("stored"))


def test_closing_with_much_queued_leaves_no_caller_waiting(tmp_path: Path) -> None:
    entered, release = threading.Event(), threading.Event()

    def slow(_: Connection) -> None:
        entered.set()
        assert release.wait(60)

    async def scenario(database: Database) -> None:
        await database.write(TABLE.metadata.create_all)
        running = asyncio.ensure_future(database.write(slow))
        assert await asyncio.to_thread(entered.wait, 10)
        waiting = [asyncio.ensure_future(database.write(store)) for _ in range(5000)]
        await asyncio.sleep(0)
        closing = threading.Thread(target=database.close)
        closing.start()
        release.set()
        await asyncio.wait_for(asyncio.gather(running, *waiting), 60)
        closing.join()

    url = f"sqlite:///{tmp_path / 'marks.sqlite'}"
    asyncio.run(scenario(Database(url, name="marks")))
    reopened = Database(url, name="marks")
    count = sa.select(sa.func.count()).select_from(TABLE)
    assert asyncio.run(reopened.read(lambda c: c.execute(count).scalar_one())) == 5000
    reopened.close()
