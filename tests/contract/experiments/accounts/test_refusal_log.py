"""The audit log of refusals, some of which no database takes, on both databases."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from contract.serving.databases import open_database
from sqlalchemy.engine import Connection
from structlog.testing import capture_logs
from support.clocks import ManualClock

from resolute.api.experiments.v1 import access_service_pb2 as pb2
from resolute.contracts.times import to_timestamp
from resolute.errors import UnavailableError
from resolute_experiments.accounts.refusal_log import RefusalLog
from resolute_experiments.accounts.servicers.user_messages import refusal_of
from resolute_experiments.store.schema import audit
from resolute_serving.auth.refusals import CountedRefusal, Refusal, Refusals
from resolute_serving.database.engine import Database

METADATA = sa.MetaData()
audit.to_metadata(METADATA)
LARGE = 2**63 - 1


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with open_database(database_url, METADATA) as opened:
        yield opened


def refusal(actor: str, *, user_id: int | None = None) -> CountedRefusal:
    kind = Refusal(actor=actor, user_id=user_id, action="permission_denied", resource="call A/B", peer="::1")
    return CountedRefusal(kind, 3, ManualClock().time())


def actors(connection: Connection) -> list[str]:
    return sorted(connection.execute(sa.select(audit.c.actor)).scalars())


def test_a_row_that_the_database_refuses_is_named_and_the_others_are_written(database: Database) -> None:
    async def scenario() -> None:
        refusals = Refusals(ManualClock())
        for counted in (refusal("ada"), refusal("eve", user_id=2**70), refusal("\ud800"), refusal("bob")):
            refusals.add(counted)
        with capture_logs() as lines:
            await RefusalLog(database, refusals, clock=ManualClock()).write()
        assert await database.read(actors) == ["ada", "bob"]
        assert [line["refusal"].refusal.actor for line in lines] == ["eve", "\ud800"]
        assert not refusals.take()

    asyncio.run(scenario())


def test_rows_are_kept_while_the_database_does_not_answer(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        refusals = Refusals(ManualClock())
        log = RefusalLog(database, refusals, clock=ManualClock())
        refusals.add(refusal("ada"))
        refusals.add(refusal("bob"))

        async def unavailable(work: object) -> None:
            raise UnavailableError("the database does not answer")

        with monkeypatch.context() as outage, capture_logs() as lines:
            outage.setattr(database, "write", unavailable)
            await log.write()
        assert [line["event"] for line in lines if "removed" not in line["event"]] == [
            "refusals could not be written to the audit log yet"
        ]
        await log.write()
        assert await database.read(actors) == ["ada", "bob"]

    asyncio.run(scenario())


def test_what_another_service_sends_always_fits(database: Database) -> None:
    time = to_timestamp(ManualClock().time())
    large = pb2.Refusal(actor="a" * 999, user_id=LARGE, action="b" * 999, count=LARGE, time=time)
    small = pb2.Refusal(actor="bob", user_id=-1, count=-LARGE, time=time)

    async def scenario() -> None:
        refusals = Refusals(ManualClock())
        refusals.add(refusal_of(large))
        refusals.add(refusal_of(small))
        with capture_logs() as lines:
            await RefusalLog(database, refusals, clock=ManualClock()).write()
        assert await database.read(actors) == ["a" * 200, "bob"]
        assert not lines

    asyncio.run(scenario())
