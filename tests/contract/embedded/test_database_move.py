"""A home of SQLite files that moves into PostgreSQL: every row, once, whatever interrupts it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from support.databases.postgres import PostgresServer
from support.history.old_home import restore_home
from support.ports import free_port
from support.processes.crash_points import CrashPoints, kill_at_step, steps_of

from resolute.client.connection.home import Home
from resolute.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from resolute_embedded.blueprints import BLUEPRINTS
from resolute_embedded.doctor.databases import check_databases
from resolute_embedded.home import database_move
from resolute_embedded.home.backups import adopt_copy, back_up, upgrade_databases
from resolute_embedded.home.database_move import move
from resolute_embedded.home.databases import HomeDatabases
from resolute_embedded.home.identity import require_original
from resolute_embedded.home.private_home import make_private
from resolute_embedded.home.state_directory import StateDirectory
from resolute_embedded.home.turns import served_alone
from resolute_serving.database.engine import create_engine
from resolute_serving.database.urls import sqlite_url

OWNERS = [blueprint for blueprint in BLUEPRINTS if blueprint.package]
KILLS = 8
"""Of about a hundred steps at which a move can be killed."""


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that earlier versions filled, at the newest schema."""
    home = tmp_path_factory.mktemp("upgraded") / "home"
    restore_home(home)
    state = StateDirectory(Home(home))
    state.cluster_id.get()
    upgrade_databases("", state)
    return home


@pytest.fixture
def state(upgraded: Path, tmp_path: Path) -> StateDirectory:
    home = tmp_path / "home #1 %41"  # letters that mean something in URLs
    shutil.copytree(upgraded, home)
    return StateDirectory(Home(home))


def rows_of(engine: sa.Engine, table: sa.Table) -> list[tuple[Any, ...]]:
    with engine.connect() as connection:
        rows = connection.execute(sa.select(table).order_by(*table.primary_key.columns)).all()
        return [
            tuple(bytes(value) if isinstance(value, memoryview) else value for value in row) for row in rows
        ]


def metadata_of(package: str) -> sa.MetaData:
    schema = import_module(f"{package}.store.schema")
    found = getattr(schema, "metadata", None) or schema.METADATA
    assert isinstance(found, sa.MetaData)
    return found


def numbered(files: sqlite3.Connection) -> list[tuple[str, int]]:
    """Tables whose rows have numbers that never come back, each with the latest."""
    try:
        return files.execute("SELECT name, seq FROM sqlite_sequence").fetchall()
    except sqlite3.OperationalError:
        return []  # a service without any


def require_moved(state: StateDirectory, url: str) -> int:
    """Compares every table, and what number its next row gets; returns how many rows there are."""
    assert not state.databases.files.is_dir(), "an older release would serve it"
    total = 0
    for blueprint in OWNERS:
        path = state.databases.files_before_move / f"{blueprint.name}.sqlite"
        before = create_engine(sqlite_url(path), name=blueprint.name, writes=False)
        after = create_engine(url, name=blueprint.name, writes=False)
        for table in metadata_of(blueprint.package).sorted_tables:
            rows = rows_of(after, table)
            assert rows == rows_of(before, table), table.name
            total += len(rows)
        with closing(sqlite3.connect(path)) as files, after.connect() as connection:
            for name, latest in numbered(files):
                key = metadata_of(blueprint.package).tables[name].autoincrement_column
                assert key is not None
                sequence = f"SELECT nextval(pg_get_serial_sequence('{name}', '{key.name}'))"
                assert connection.exec_driver_sql(sequence).scalar() == latest + 1, name
        before.dispose()
        after.dispose()
    return total


def test_every_row_moves_and_numbers_go_on(state: StateDirectory, postgres_server: PostgresServer) -> None:
    url = postgres_server.clean_database()
    counts = move(state, url.replace("+psycopg", ""))
    assert state.databases.url("metrics") == url
    # The version of each schema is a row too.
    assert sum(counts.values()) == require_moved(state, url) + len(OWNERS) > 500
    assert all(finding.status.value == "ok" for finding in check_databases(state))
    assert upgrade_databases("", state)
    make_private(state)
    assert not state.databases.files.is_dir()
    with pytest.raises(FailedPreconditionError, match="are in PostgreSQL: back them up by its own means"):
        back_up(state, state.home.path / "backup")
    with pytest.raises(FailedPreconditionError, match="are in PostgreSQL already"):
        move(state, url)


def test_a_move_that_was_killed_anywhere_is_whole_once_it_is_repeated(
    state: StateDirectory, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    copies = iter(range(100))

    def work(home: Path, points: CrashPoints) -> None:
        points.around(database_move, "_copy_table")
        points.around(database_move, "_verified")
        points.around(HomeDatabases, "move_to")
        points.around(HomeDatabases, "set_files_aside")
        move(StateDirectory(Home(home)), url)

    def fresh() -> Path:
        return Path(shutil.copytree(state.home.path, tmp_path / f"copy-{next(copies)}"))

    url, home = postgres_server.clean_database(), fresh()
    steps = steps_of(partial(work, home))
    assert steps > 80
    # Before the note in the home, and after it, among others.
    for fatal in sorted({*range(steps - 3, steps + 1), *range(1, steps, steps // (KILLS - 4))}):
        url, home = postgres_server.clean_database(), fresh()
        kill_at_step(fatal, partial(work, home))
        killed = StateDirectory(Home(home))
        assert killed.databases.are_moved == (fatal > steps - 3)
        if killed.databases.are_moved:
            with pytest.raises(FailedPreconditionError, match="are in PostgreSQL already"):
                move(killed, url)
        else:
            move(killed, url)
        require_moved(killed, url)


def test_a_moved_home_goes_on_elsewhere_once_it_is_adopted(
    state: StateDirectory, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    url = postgres_server.clean_database()
    require_original(state)
    move(state, url)
    copy = StateDirectory(Home(Path(shutil.copytree(state.home.path, tmp_path / "elsewhere"))))
    with pytest.raises(FailedPreconditionError, match="adopt-copy"):
        require_original(copy)
    with pytest.raises(FailedPreconditionError, match="where its original uses them: add --take-over"):
        adopt_copy(copy, take_over=False)
    with served_alone(state), pytest.raises(FailedPreconditionError, match="another process serves"):
        adopt_copy(copy, take_over=True)
    for _ in range(2):
        adopt_copy(copy, take_over=True)
    require_original(copy)
    assert (copy.cluster_id.get(), copy.databases.url("logs")) == (state.cluster_id.get(), url)
    # Beside its original it needs a database of its own.
    restored = postgres_server.new_database()
    beside = StateDirectory(Home(Path(shutil.copytree(state.home.path, tmp_path / "beside"))))
    for _ in range(2):
        adopt_copy(beside, take_over=False, url=restored.replace("+psycopg", ""))
    require_original(beside)
    assert beside.cluster_id.get() != state.cluster_id.get()
    assert (beside.databases.url("logs"), state.databases.url("logs")) == (restored, url)
    files = StateDirectory(Home(tmp_path / "files"))
    files.databases.files.mkdir(parents=True)
    with pytest.raises(FailedPreconditionError, match="leave out --url"):
        adopt_copy(files, take_over=True, url=url)


def test_what_cannot_be_moved_is_left_as_it_is(
    state: StateDirectory, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    url = postgres_server.clean_database()
    for wrong in ("sqlite:///elsewhere.sqlite", "no url"):
        with pytest.raises(InvalidArgumentError, match="must be postgresql://"):
            move(state, wrong)
    with pytest.raises(FailedPreconditionError, match="holds no cluster"):
        move(StateDirectory(Home(tmp_path / "nothing")), url)
    lock = state.lock
    lock.acquire()
    with pytest.raises(FailedPreconditionError, match="another `resolute up`"):
        move(state, url)
    lock.release()
    engine = create_engine(url, name="public", writes=True)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE SCHEMA logs")
        connection.exec_driver_sql("CREATE TABLE logs.lines (text TEXT)")
    with pytest.raises(FailedPreconditionError, match="has tables already, in schema logs"):
        move(state, url)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE logs.lines")
    note = HomeDatabases.move_to
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HomeDatabases, "move_to", lambda *_: None)
        patch.setattr(HomeDatabases, "set_files_aside", lambda *_: None)
        move(state, url)
    # The home was served once more, since the note was missing: what it wrote is not in PostgreSQL.
    with closing(sqlite3.connect(state.databases.files / "experiments.sqlite")) as files:
        files.execute("UPDATE users SET role = 'viewer'")
        files.commit()
    assert HomeDatabases.move_to is note
    with pytest.raises(
        FailedPreconditionError, match="has tables already, in schema checkpoints, experiments"
    ):
        move(state, url)
    assert not state.databases.are_moved
    engine.dispose()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE users SET password = 'a' || char(0) || 'b'", r"experiments\.users could not be moved.*NUL"),
        ("UPDATE users SET role = printf('%.*c', 300, 'x')", r"experiments\.users .*value too long"),
        (
            "UPDATE users SET number = 3000000000 WHERE name = (SELECT max(name) FROM users)",
            r"experiments\.users .*out of range",
        ),
    ],
)
def test_a_row_that_postgresql_cannot_hold_is_named_with_its_table(
    state: StateDirectory, postgres_server: PostgresServer, change: str, message: str
) -> None:
    url = postgres_server.clean_database()
    with closing(sqlite3.connect(state.databases.files / "experiments.sqlite")) as files:
        files.execute(change)
        files.commit()
    with pytest.raises(FailedPreconditionError, match=message):
        move(state, url)
    assert not state.databases.are_moved
    require_empty(url)


def test_a_connection_that_breaks_while_a_table_is_copied_is_told_with_its_table(
    state: StateDirectory, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, rows = postgres_server.clean_database(), database_move._rows

    def broken(source: sqlite3.Connection, query: str) -> Iterator[tuple[Any, ...]]:
        yield from rows(source, query)
        if '"trials"' in query:
            engine = create_engine(url, name="public", writes=True)
            with engine.begin() as connection:
                others = (
                    "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
                )
                connection.exec_driver_sql(f"SELECT pg_terminate_backend(pid) {others}")
            engine.dispose()

    monkeypatch.setattr(database_move, "_rows", broken)
    with pytest.raises(FailedPreconditionError, match=r"\.trials could not be moved, and nothing was"):
        move(state, url)
    assert not state.databases.are_moved
    require_empty(url)


def require_empty(url: str) -> None:
    engine = create_engine(url, name="public", writes=False)
    with engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT 1 FROM pg_namespace WHERE nspname = 'experiments'")
        assert not found.all()
    engine.dispose()


def test_one_process_serves_a_database_whatever_home_names_it(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    url = postgres_server.clean_database()
    homes = [StateDirectory(Home(tmp_path / name)) for name in ("first", "second")]
    with served_alone(homes[0]), served_alone(homes[1]):
        pass  # SQLite files are each home's own
    for home in homes:
        home.databases.move_to(url)
    with (
        served_alone(homes[0]),
        pytest.raises(FailedPreconditionError, match="another process serves the database"),
        served_alone(homes[1]),
    ):
        pass
    with served_alone(homes[1]):
        pass
    homes[0].databases.move_to(f"postgresql+psycopg://resolute@127.0.0.1:{free_port()}/nothing")
    with pytest.raises(UnavailableError, match="does not answer"), served_alone(homes[0]):
        pass
