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

import psycopg
import pytest
from support.ports import free_port

_START_SECONDS = 60
_names = itertools.count(1)


@dataclass(frozen=True)
class PostgresServer:
    """A running server."""

    port: int

    def new_database(self) -> str:
        """Makes an empty database and gives its SQLAlchemy URL."""
        name = f"test_{next(_names)}"
        with psycopg.connect(
            f"postgresql://resolute@127.0.0.1:{self.port}/postgres", autocommit=True
        ) as link:
            link.execute(f'CREATE DATABASE "{name}"')
        return f"postgresql+psycopg://resolute@127.0.0.1:{self.port}/{name}"


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
    return server.new_database()


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
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories="
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
