"""A private PostgreSQL server for tests: started once a session on loopback, removed at its end.

Import the two fixtures into a ``conftest.py``; ``database_url`` then runs a test once on each backend.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from psycopg import sql
from support.backends import missing
from support.databases import kept_schemas
from support.ports import free_port

_START_SECONDS = 180
_COMMAND_SECONDS = 300.0
_names = itertools.count(1)


@dataclass(frozen=True)
class PostgresServer:
    """A running server."""

    port: int

    def new_database(self) -> str:
        """Makes an empty database and gives its SQLAlchemy URL. It takes 300 files, so prefer a clean one."""
        name = f"test_{next(_names)}"
        with self._connect("postgres") as link:
            link.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self._url(name)

    def clean_database(self) -> str:
        """Empties the one database that tests use after each other, and gives its SQLAlchemy URL.

        Schemas that the next test is likely to want are kept under other names.
        """
        with self._connect("postgres") as link:
            # Anyone who still holds a table of an earlier test shall be found out, not waited for.
            link.execute("SET lock_timeout = '10s'")
            found = link.execute(
                "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'"
            )
            for (schema,) in found.fetchall():
                if not kept_schemas.put_aside(link, schema):
                    link.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))
            link.execute("CREATE SCHEMA public")
        return self._url("postgres")

    def _connect(self, database: str) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(f"postgresql://resolute@127.0.0.1:{self.port}/{database}", autocommit=True)

    def _url(self, database: str) -> str:
        return f"postgresql+psycopg://resolute@127.0.0.1:{self.port}/{database}"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The session's server; skips where PostgreSQL is not installed."""
    with _server(binaries()) as server:
        yield server


def binaries() -> Path:
    """The folder of PostgreSQL's programs; skips where it is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        missing("PostgreSQL is missing: no /usr/lib/postgresql/*/bin/initdb; install Debian's postgresql")
    return found[-1].parent


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, once on SQLite and once on PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'service.sqlite'}"
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.clean_database()


@contextmanager
def new_postgres() -> Iterator[str]:
    """A server of its own until the block ends: gives the SQLAlchemy URL of an empty database."""
    with _server(binaries()) as server:
        yield server.new_database()


@contextmanager
def crashable_postgres() -> Iterator[CrashablePostgres]:
    """A durable server of its own, to be killed without a chance to tidy up.

    Skips where PostgreSQL is not installed.
    """
    with _cluster(binaries()) as cluster:
        server = CrashablePostgres(cluster)
        server.start()
        try:
            yield server
        finally:
            server.kill()


class CrashablePostgres:
    """A server that comes back on its port with what it had committed."""

    def __init__(self, cluster: _Cluster) -> None:
        self._cluster = cluster

    def start(self) -> None:
        """Starts it and waits until it has recovered."""
        self._cluster.start()

    def kill(self) -> None:
        """Ends the server and every process of it at once. Does nothing when it does not run."""
        lock = self._cluster.data / "postmaster.pid"
        if not lock.exists():
            return
        leader = psutil.Process(int(lock.read_text().splitlines()[0]))
        family = [leader, *leader.children()]
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(family, timeout=_START_SECONDS)
        lock.unlink(missing_ok=True)

    def new_database(self) -> str:
        """Makes an empty database and gives its SQLAlchemy URL."""
        return PostgresServer(self._cluster.port).new_database()


@dataclass(frozen=True)
class _Cluster:
    """An initialized data directory, and how to start a server on it."""

    binaries: Path
    folder: Path
    user: str | None
    port: int
    options: str

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= {self.options}"
        log = str(self.folder / "log")
        _run([*self._control, "-t", str(_START_SECONDS), "-l", log, "-o", options, "start"], user=self.user)

    def stop(self) -> None:
        _run([*self._control, "-m", "immediate", "stop"], user=self.user)

    @property
    def _control(self) -> list[str]:
        return [str(self.binaries / "pg_ctl"), "-D", str(self.data), "-w"]


@contextmanager
def _cluster(binaries: Path, *, options: str = "") -> Iterator[_Cluster]:
    user = _unprivileged_user()
    folder = Path(tempfile.mkdtemp(prefix="resolute-postgres-"))
    try:
        if user:
            shutil.chown(folder, user=user)
        cluster = _Cluster(binaries, folder, user, free_port(), options)
        _run(
            [
                str(binaries / "initdb"),
                "-D",
                str(cluster.data),
                "-U",
                "resolute",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "-N",
            ],
            user=user,
        )
        yield cluster
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _server(binaries: Path) -> Iterator[PostgresServer]:
    # What tests store is never read after a power cut.
    with _cluster(binaries, options="-c fsync=off") as cluster:
        cluster.start()
        try:
            yield PostgresServer(cluster.port)
        finally:
            cluster.stop()


def _run(command: list[str], *, user: str | None) -> None:
    # The server outlives pg_ctl, so its output must not be a pipe that is read to its end.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            command,
            user=user,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=False,
            timeout=_COMMAND_SECONDS,
        )
        if done.returncode != 0:
            output.seek(0)
            text = output.read().decode(errors="replace")
            raise RuntimeError(f"{' '.join(command)} failed:\n{text}")


def _unprivileged_user() -> str | None:
    """Whom to run the server as: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    for name in ("postgres", "nobody"):
        if name in known:
            return name
    return missing("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
