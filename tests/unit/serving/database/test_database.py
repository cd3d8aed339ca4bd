"""The database of a service: group commit, isolation of failures, durable settings, a full disk."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import ConflictError, NotFoundError, QuotaError, UnavailableError
from resolute_serving.context import Role, User, actor, current_principal
from resolute_serving.database.engine import Database

DEADLINE = 60.0

TABLE = sa.Table(
    "items", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True), sa.Column("text", sa.Text)
)


def insert(connection: Connection, number: int, text: str = "") -> None:
    connection.execute(sa.insert(TABLE).values(id=number, text=text))


def count(connection: Connection) -> int:
    return int(connection.execute(sa.select(sa.func.count()).select_from(TABLE)).scalar_one())


def open_database(path: Path, *, max_pages: int | None = None) -> Database:
    database = Database(f"sqlite:///{path}", name="test", max_pages=max_pages)
    TABLE.metadata.create_all(database.engine)
    return database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(tmp_path / "test.sqlite")
    yield opened
    opened.close()


def test_many_writers_share_few_commits_and_all_of_them_are_kept(database: Database) -> None:
    commits = 0

    @sa.event.listens_for(database.engine, "commit")
    def note(_: Connection) -> None:
        nonlocal commits
        commits += 1

    async def write_all() -> None:
        await asyncio.gather(*(database.write(partial(insert, number=number)) for number in range(200)))

    asyncio.run(write_all())
    assert asyncio.run(database.read(count)) == 200
    assert commits < 100


def test_failure_of_one_piece_of_work_leaves_the_others_of_its_group(database: Database) -> None:
    def fail(connection: Connection) -> None:
        insert(connection, 1000)
        raise NotFoundError("nothing here")

    async def write_all() -> list[BaseException | None]:
        work: list[Callable[[Connection], None]] = [partial(insert, number=number) for number in range(5)]
        return await asyncio.gather(
            *(database.write(one) for one in (*work, fail, *[lambda c: insert(c, 77)])),
            return_exceptions=True,
        )

    outcomes = asyncio.run(write_all())
    assert [type(outcome) for outcome in outcomes] == [type(None)] * 5 + [NotFoundError, type(None)]
    assert asyncio.run(database.read(count)) == 6


def test_duplicate_key_is_a_conflict(database: Database) -> None:
    asyncio.run(database.write(lambda c: insert(c, 1)))
    with pytest.raises(ConflictError, match="another writer changed it first"):
        asyncio.run(database.write(lambda c: insert(c, 1)))


def test_writes_are_on_disk_before_they_are_answered(database: Database) -> None:
    def settings(connection: Connection) -> tuple[int, str]:
        synchronous = connection.exec_driver_sql("PRAGMA synchronous").scalar_one()
        journal = connection.exec_driver_sql("PRAGMA journal_mode").scalar_one()
        return int(synchronous), str(journal)

    full = 2
    assert asyncio.run(database.write(settings)) == (full, "wal")


def test_full_disk_is_said_and_nothing_half_is_kept(tmp_path: Path) -> None:
    database = open_database(tmp_path / "small.sqlite", max_pages=20)

    def fill(connection: Connection) -> None:
        for number in range(100):
            insert(connection, number, "x" * 4000)

    with pytest.raises(QuotaError, match="the disk that holds the test database is full"):
        asyncio.run(database.write(fill))
    assert asyncio.run(database.read(count)) == 0
    asyncio.run(database.write(lambda c: insert(c, 1)))
    database.close()


def test_closing_finishes_what_is_queued(tmp_path: Path) -> None:
    database = open_database(tmp_path / "test.sqlite")

    async def write_and_close() -> None:
        writes = [asyncio.create_task(database.write(partial(insert, number=number))) for number in range(50)]
        await asyncio.sleep(0)
        database.close()
        await asyncio.gather(*writes)

    asyncio.run(write_and_close())
    reopened = open_database(tmp_path / "test.sqlite")
    assert asyncio.run(reopened.read(count)) == 50
    reopened.close()


def test_work_knows_who_called_also_when_it_shares_a_commit_with_others(tmp_path: Path) -> None:
    database = open_database(tmp_path / "test.sqlite")

    async def write_as(name: str) -> str:
        current_principal.set(User(name, Role.EDITOR))
        return await database.write(lambda _connection: actor())

    async def all_at_once() -> list[str]:
        return await asyncio.gather(*(write_as(f"user-{number}") for number in range(20)))

    assert asyncio.run(all_at_once()) == [f"user-{number}" for number in range(20)]
    database.close()


def test_writes_beyond_the_bound_are_refused_and_those_within_it_are_kept(tmp_path: Path) -> None:
    async def scenario() -> None:
        database = Database(f"sqlite:///{tmp_path / 'full.sqlite'}", name="full", max_waiting=3)
        begun, go = threading.Event(), threading.Event()

        def block(_: Connection) -> bool:
            begun.set()
            return go.wait(DEADLINE)

        try:
            running = asyncio.create_task(database.write(block))
            await asyncio.to_thread(begun.wait, DEADLINE)
            waiting = [asyncio.create_task(database.write(lambda _: 1)) for _ in range(10)]
            refused, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_EXCEPTION)
            assert refused
            go.set()
            outcomes = await asyncio.gather(running, *waiting, return_exceptions=True)
            assert [one for one in outcomes if not isinstance(one, UnavailableError)] == [True, 1, 1, 1]
        finally:
            go.set()
            database.close()

    asyncio.run(scenario())


def test_what_an_error_says_of_a_statement_has_no_values_of_it(database: Database) -> None:
    statement = sa.text("INSERT INTO nowhere VALUES (:secret)")
    with pytest.raises(sa.exc.OperationalError) as raised, database.engine.connect() as connection:
        connection.execute(statement, {"secret": "a password"})
    assert "nowhere" in str(raised.value)
    assert "a password" not in str(raised.value)
