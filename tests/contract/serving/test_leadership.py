"""One process serves a PostgreSQL database: the next one takes over, and the former one cannot write."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from support.clocks import ManualClock
from support.daemons.silent_proxy import silent_proxy
from support.databases.postgres import PostgresServer
from support.waiting import wait_until

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.errors import UnavailableError
from resolute_serving.database.engine import Database
from resolute_serving.database.fence import FencedError
from resolute_serving.database.leadership import (
    LOOK_SECONDS,
    VACANT_SECONDS,
    Leadership,
    Look,
    Term,
    Vacancy,
)

_LOOKS = int(VACANT_SECONDS / LOOK_SECONDS)
TABLE = sa.Table("notes", sa.MetaData(), sa.Column("text", sa.String(20)))
pytestmark = pytest.mark.integration


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    return postgres_server.clean_database()


@pytest.fixture
def homes(url: str) -> Iterator[tuple[Leadership, Leadership]]:
    first, second = (Leadership(url, holder=name, clock=SYSTEM_CLOCK) for name in ("first", "second"))
    first.prepare()
    second.prepare()
    yield first, second
    first.close()
    second.close()


def take(leadership: Leadership) -> Term:
    term = leadership.take(leadership.look())
    assert term is not None
    return term


def open_database(url: str, term: Term) -> Database:
    database = Database(url, name="test", fence=term.fence)
    with database.engine.begin() as connection:
        connection.execute(sa.text("CREATE SCHEMA IF NOT EXISTS test"))
        TABLE.metadata.create_all(connection)
    return database


def note(database: Database, text: str) -> None:
    asyncio.run(database.write(lambda c: c.execute(TABLE.insert().values(text=text)) and None))


def notes(database: Database) -> list[str]:
    return asyncio.run(database.read(lambda c: list(c.execute(sa.select(TABLE.c.text)).scalars())))


def test_what_a_former_process_writes_is_refused_and_it_learns_of_it(
    url: str, homes: tuple[Leadership, Leadership]
) -> None:
    former, lost = take(homes[0]), threading.Event()
    old = open_database(url, former)
    note(old, "before")
    new = open_database(url, take(homes[1]))
    for _ in range(3):
        # The first time, its connection was ended; from then on it is refused.
        with pytest.raises(UnavailableError):
            note(old, "after")
    with pytest.raises(FencedError, match="another process serves this cluster now"):
        note(old, "after")
    note(new, "of the next")
    assert notes(new) == ["before", "of the next"]
    # It can still read, but nothing that it would act on.
    assert notes(old) == ["before", "of the next"]
    with pytest.raises(FencedError):
        asyncio.run(old.read_fenced(lambda connection: connection.execute(sa.select(TABLE)).all()))
    assert len(asyncio.run(new.read_fenced(lambda c: c.execute(sa.select(TABLE)).all()))) == 2
    former.begin(lost.set)
    assert lost.wait(60)
    old.close()
    new.close()


def test_a_transaction_that_a_stopped_process_left_open_neither_commits_nor_holds_up_the_next(
    url: str, homes: tuple[Leadership, Leadership]
) -> None:
    old = open_database(url, take(homes[0]))
    connection = old.engine.connect()
    connection.begin()
    connection.execute(TABLE.insert().values(text="half"))
    new = open_database(url, take(homes[1]))
    with pytest.raises(sa.exc.DBAPIError):
        connection.commit()
    connection.invalidate()
    connection.close()
    assert notes(new) == []
    old.close()
    new.close()


def test_no_session_of_a_stopped_process_keeps_its_place_at_the_server(
    url: str, homes: tuple[Leadership, Leadership]
) -> None:
    """A server takes about a hundred, and one that is cut off would hold its own until TCP gives up."""

    def session(connection: sa.Connection) -> int:
        return int(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())

    old = open_database(url, take(homes[0]))
    held = {asyncio.run(old.read(session)), asyncio.run(old.write(session))}
    new = open_database(url, take(homes[1]))

    def left(connection: sa.Connection) -> set[int]:
        return held & set(connection.exec_driver_sql("SELECT pid FROM pg_stat_activity").scalars())

    wait_until(
        lambda: not asyncio.run(new.read(left)), seconds=30, what="the sessions of the former process to end"
    )
    old.close()
    new.close()


def test_a_commit_that_comes_first_is_kept_by_the_next(
    url: str, homes: tuple[Leadership, Leadership]
) -> None:
    """The epoch waits for transactions that it cannot end, here because their session has another name."""
    term = take(homes[0])
    old = open_database(url, term)
    renamed = old.engine.connect()
    renamed.begin()
    renamed.execute(sa.text("SET application_name = 'another'"))
    renamed.execute(TABLE.insert().values(text="whole"))
    with pytest.raises(UnavailableError, match="lock timeout"):
        homes[1].take(homes[1].look())
    renamed.commit()
    renamed.close()
    new = open_database(url, take(homes[1]))
    assert notes(new) == ["whole"]
    old.close()
    new.close()


def test_a_beat_that_came_meanwhile_and_a_faster_process_keep_others_from_taking_over(
    homes: tuple[Leadership, Leadership],
) -> None:
    first, second = homes
    seen = second.look()
    take(first)
    assert second.take(seen) is None
    seen, term = second.look(), first.take(first.look())
    assert term is not None
    term.begin(lambda: None)
    assert second.take(seen) is None
    term.end()
    assert second.look().holder == ""
    successor = take(second)
    assert successor.fence.epoch == 3
    assert not successor.runs_are_elsewhere, "no home has had runs yet"
    successor.note_runs()
    assert take(first).runs_are_elsewhere
    assert not take(second).runs_are_elsewhere


def test_a_process_is_taken_for_gone_after_five_seconds_of_looks_without_a_beat() -> None:
    clock = ManualClock()
    vacancy, look = Vacancy("mine", clock), Look(3, 7, "other", "other")

    def looks(count: int, look: Look) -> bool:
        vacant = False
        for _ in range(count):
            vacant = vacancy.is_vacant(look)
            clock.advance(LOOK_SECONDS)
        return vacant

    assert not looks(_LOOKS, look)
    assert looks(1, look)
    beat = Look(3, 8, "other", "other")
    assert not looks(_LOOKS, beat)
    vacancy.forget()
    assert not looks(_LOOKS, beat), "the database was away"
    vacancy.forget()
    assert not looks(1, beat)
    clock.advance(3600)
    assert not looks(1, beat), "this process was paused: whoever serves may have been too"
    assert vacancy.is_vacant(Look(3, 9, "", "other")), "it stopped by itself"
    assert vacancy.is_vacant(Look(3, 9, "mine", "other")), "it was this home's, whose lock is held here"


def test_the_time_in_which_the_database_answers_counts_as_time_without_a_confirmation(
    url: str,
    homes: tuple[Leadership, Leadership],
) -> None:
    """A process may be stopped once the database has answered, and go on when another one serves."""

    class Clock(ManualClock):
        def monotonic(self) -> float:
            return VACANT_SECONDS * homes[1].look().beats

    watched = Leadership(url, holder="first", clock=Clock())
    term = take(watched)
    assert term.is_held()
    term.begin(lambda: None)
    wait_until(lambda: homes[1].look().beats > 0, what="a beat")
    term.end()
    assert not term.is_held()
    watched.close()


def test_a_process_whose_packets_to_the_database_are_lost_learns_of_its_successor(
    url: str, homes: tuple[Leadership, Leadership]
) -> None:
    parsed, lost = sa.make_url(url), threading.Event()
    with silent_proxy(f"{parsed.host}:{parsed.port}") as proxy:
        own = parsed.set(port=int(proxy.address.rpartition(":")[2])).render_as_string(hide_password=False)
        cut_off = Leadership(own, holder="first", clock=SYSTEM_CLOCK)
        former = take(cut_off)
        former.begin(lost.set)
        wait_until(lambda: homes[1].look().beats > 0, what="a beat")
        proxy.partition()
        wait_until(lambda: not former.is_held(), what="load balancers to be warned")
        take(homes[1])
        assert not lost.is_set()
        proxy.heal()
        assert lost.wait(60), "what was open stays silent"
        cut_off.close()
