"""Creating calls that are repeated."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from functools import partial

import pytest
import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations
from contract.serving.databases import open_database
from sqlalchemy.engine import Connection
from support.calls.request_messages import message_type
from support.clocks import ManualClock

from resolute.errors import AlreadyExistsError, FailedPreconditionError, InvalidArgumentError
from resolute_serving.context import Role, User, current_principal
from resolute_serving.database.engine import Database
from resolute_serving.idempotency import IdempotencyKeys, create_table

Request = message_type("CreateThingRequest", request_id=str, name=str)
OtherRequest = message_type("CreateOtherRequest", request_id=str, name=str)
METADATA = sa.MetaData()
THINGS = sa.Table("things", METADATA, sa.Column("id", sa.String(36), primary_key=True))
KEYS = IdempotencyKeys(sa.MetaData())
REQUEST_ID = "6d9a5c53-5f1f-4c2b-9f3d-0a2f6b1f4e11"


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with open_database(database_url, METADATA) as database:
        with database.engine.begin() as connection:
            create_table(Operations(MigrationContext.configure(connection)))
        yield database


def _create(connection: Connection) -> str:
    thing_id = str(uuid.uuid4())
    connection.execute(THINGS.insert(), {"id": thing_id})
    return thing_id


def _once(connection: Connection, request: object, *, now: float = 0.0, content: bytes = b"") -> str:
    return KEYS.once(connection, request, partial(_create, connection), now=now, content=content)


def _count(connection: Connection) -> int:
    return connection.execute(sa.select(sa.func.count()).select_from(THINGS)).scalar_one()


def test_migration_creates_what_the_code_declares(database: Database) -> None:
    found = {column["name"] for column in sa.inspect(database.engine).get_columns("idempotency_keys")}
    assert found == {column.name for column in KEYS.table.columns}


def test_repeated_call_gets_the_object_of_the_first(database: Database) -> None:
    request = Request(request_id=REQUEST_ID, name="a")
    first = asyncio.run(database.write(lambda c: _once(c, request)))
    request.request_id = REQUEST_ID.upper()
    assert asyncio.run(database.write(lambda c: _once(c, request))) == first
    assert asyncio.run(database.read(_count)) == 1


def test_calls_without_a_request_id_each_create(database: Database) -> None:
    for _ in range(2):
        asyncio.run(database.write(lambda c: _once(c, Request(name="a"))))
    assert asyncio.run(database.read(_count)) == 2


@pytest.mark.parametrize(("name", "content"), [("b", b""), ("a", b"other file")])
def test_same_id_with_another_request_is_refused_by_name(
    database: Database, name: str, content: bytes
) -> None:
    asyncio.run(database.write(lambda c: _once(c, Request(request_id=REQUEST_ID, name="a"))))
    other = Request(request_id=REQUEST_ID, name=name)
    with pytest.raises(AlreadyExistsError, match=REQUEST_ID):
        asyncio.run(database.write(lambda c: _once(c, other, content=content)))


def test_ids_of_other_callers_and_methods_are_others(database: Database) -> None:
    async def scenario() -> None:
        await database.write(lambda c: _once(c, Request(request_id=REQUEST_ID)))
        await database.write(lambda c: _once(c, OtherRequest(request_id=REQUEST_ID)))
        current_principal.set(User("ada", Role.EDITOR))
        await database.write(lambda c: _once(c, Request(request_id=REQUEST_ID)))
        assert await database.read(_count) == 3

    asyncio.run(scenario())


def test_failed_creation_is_not_remembered(database: Database) -> None:
    request = Request(request_id=REQUEST_ID)

    def fail() -> str:
        raise FailedPreconditionError("not yet")

    with pytest.raises(FailedPreconditionError):
        asyncio.run(database.write(lambda c: KEYS.once(c, request, fail, now=0.0)))
    asyncio.run(database.write(lambda c: _once(c, request)))
    assert asyncio.run(database.read(_count)) == 1


def test_id_that_is_no_uuid_is_refused(database: Database) -> None:
    with pytest.raises(InvalidArgumentError, match="request_id is 'first'"):
        asyncio.run(database.write(lambda c: _once(c, Request(request_id="first"))))


def test_two_replicas_that_get_the_same_call_create_one_object(database: Database) -> None:
    request = Request(request_id=REQUEST_ID)
    replica = Database(database.url, name="test")

    async def scenario() -> None:
        calls = [other.write(lambda c: _once(c, request)) for other in (database, replica) for _ in range(5)]
        assert len(set(await asyncio.gather(*calls))) == 1

    try:
        asyncio.run(scenario())
    finally:
        replica.close()


def test_ids_are_forgotten_after_a_day(database: Database) -> None:
    request, clock = Request(request_id=REQUEST_ID), ManualClock(0.0)

    async def repeat() -> str:
        return await database.write(lambda c: _once(c, request, now=clock.time()))

    first = asyncio.run(repeat())
    clock.advance(86_399)
    asyncio.run(KEYS.sweeper(database, clock=clock).sweep())
    assert asyncio.run(repeat()) == first
    clock.advance(2)
    asyncio.run(KEYS.sweeper(database, clock=clock).sweep())
    assert asyncio.run(repeat()) != first
