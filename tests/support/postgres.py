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
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from support.ports import free_port

_START_SECONDS = 60
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
        """Empties the one database that tests use after each other, and gives its SQLAlchemy URL."""
        with self._connect("postgres") as link:
            # Whoever still holds a table of an earlier test shall be found out, not waited for.
            link.execute("SET lock_timeout = '10s'")
            found = link.execute(
                "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'"
            )
            for (schema,) in found.fetchall():
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
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not binaries:
        pytest.skip("PostgreSQL is missing: no /usr/lib/postgresql/*/bin/initdb; install Debian's postgresql")
    with _server(binaries[-1].parent) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, once on SQLite and once on PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'service.sqlite'}"
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.clean_database()


@contextmanager
def _server(binaries: Path) -> Iterator[PostgresServer]:
    user = _unprivileged_user()
    folder = Path(tempfile.mkdtemp(prefix="resolute-postgres-"))
    try:
        if user:
            shutil.chown(folder, user=user)
        port = free_port()
        data = str(folder / "data")
        initdb, control = str(binaries / "initdb"), [str(binaries / "pg_ctl"), "-D", data, "-w"]
        _run([initdb, "-D", data, "-U", "resolute", "-A", "trust", "-E", "UTF8", "-N"], user=user)
        # What tests store is never read after a power cut.
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
        log = str(folder / "log")
        _run([*control, "-t", str(_START_SECONDS), "-l", log, "-o", options, "start"], user=user)
        try:
            yield PostgresServer(port)
        finally:
            _run([*control, "-m", "immediate", "stop"], user=user)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(command: list[str], *, user: str | None) -> None:
    # The server outlives pg_ctl, so its output must not be a pipe that is read to its end.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            command, user=user, cwd="/", stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
        )
        if done.returncode != 0:
            output.seek(0)
            text = output.read().decode(errors="replace")
            raise RuntimeError(f"{' '.join(command)} failed:\n{text}")


def _unprivileged_user() -> str | None:
    """Whom to run the server as: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    pytest.skip("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
