"""The home directory of an embedded cluster, and the lock that allows only one process to serve it."""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resolute.client.connection.home import Home
from resolute.contracts.files.atomic_files import write_atomically
from resolute.contracts.run.lock import is_locked
from resolute.errors import FailedPreconditionError


class HomeLock:
    """The lock of the process that serves a home. The kernel releases it when the process ends.

    Args:
        path: The lock file, which contains the process id for people.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1

    def acquire(self) -> None:
        """Takes the lock.

        Raises:
            FailedPreconditionError: Another process holds it.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 32, 0).decode().strip() or "unknown"
            os.close(descriptor)
            raise FailedPreconditionError(
                f"another `resolute up` (process {holder}) serves {self._path.parent}; stop it with "
                "`resolute down`, or let RESOLUTE_HOME name another directory"
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Releases the lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def is_held(self) -> bool:
        """Whether some process holds it now."""
        return self.holder() is not None

    def holder(self) -> int | None:
        """The id of the process that holds it; zero if that is not noted yet, None if it is free."""
        try:
            # A shared lock wants no more, and a read-only file system gives no more.
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            noted = os.pread(descriptor, 32, 0).decode().strip()
            return int(noted) if noted.isdigit() else 0
        finally:
            os.close(descriptor)
        return None


@dataclass(frozen=True)
class StateDirectory:
    """The paths in the home directory of one embedded cluster."""

    home: Home
    """Its home directory."""

    @property
    def lock(self) -> HomeLock:
        """Lets one process serve it."""
        return HomeLock(self.home.path / "lock")

    @property
    def databases(self) -> Path:
        """One SQLite file a service."""
        return self.home.path / "databases"

    @property
    def data(self) -> Path:
        """Files of the services, the signing key among them."""
        return self.home.path / "data"

    @property
    def runs(self) -> Path:
        """One directory a run."""
        return self.home.path / "runs"

    @property
    def checkpoints(self) -> Path:
        """Checkpoints of experiments that name no other place."""
        return self.home.path / "checkpoints"

    @property
    def log(self) -> Path:
        """What a detached cluster logs; older parts of it have a number at the end of their name."""
        return self.home.path / "up.log"

    @property
    def output(self) -> Path:
        """What a detached cluster wrote to stdout and stderr since its start."""
        return self.home.path / "up.out"

    def database_url(self, service: str) -> str:
        """URL of a service's database."""
        if self.is_moved:
            return self._moved_file.read_text().strip()
        from resolute_serving.database.urls import sqlite_url  # here: most commands need no database

        return sqlite_url(self.databases / f"{service}.sqlite")

    @property
    def holds_cluster(self) -> bool:
        """Whether it was ever served."""
        return self.is_moved or self.databases.is_dir()

    @property
    def is_moved(self) -> bool:
        """Whether its databases are in PostgreSQL; the files of SQLite are those of before the move."""
        return self._moved_file.exists()

    @property
    def databases_before_move(self) -> Path:
        """The files of SQLite of a moved home, which nothing uses any more."""
        return self.home.path / "databases-before-move"

    def set_databases_aside(self) -> None:
        """Keeps releases that know no moved homes from serving the files of one. Safe to repeat.

        They would go on with the files, or make new ones: that ``databases`` is a file ends their start.
        """
        if self.databases.is_dir():
            self.databases.rename(self.databases_before_move)
        if not self.databases.exists():
            self._write(self.databases, "The databases of this home are in PostgreSQL, see database-url.\n")

    def write_moved_url(self, url: str) -> None:
        """Notes in which PostgreSQL database all services have theirs from now on."""
        self._write(self._moved_file, url)

    @property
    def _moved_file(self) -> Path:
        return self.home.path / "database-url"

    @property
    def signing_key(self) -> Path:
        """The key that signs the cluster's tokens."""
        return self.data / "signing-key.pem"

    @property
    def tls(self) -> Path:
        """The certificate that the cluster made, with its key."""
        return self.data / "tls"

    @property
    def unfinished_file(self) -> Path:
        """There while a backup is being restored into the home."""
        return self.home.path / "unfinished-restore"

    @property
    def cluster_file(self) -> Path:
        """Who the cluster is."""
        return self.home.path / "cluster.json"

    def cluster_id(self) -> str:
        """UUID of the cluster, made at its first start."""
        if not self.cluster_file.exists():
            self.renew_cluster_id()
        return str(json.loads(self.cluster_file.read_text())["cluster_id"])

    def renew_cluster_id(self) -> None:
        """Gives the cluster another id."""
        self._write(self.cluster_file, json.dumps({"cluster_id": str(uuid.uuid4())}))

    def write_endpoint(
        self, *, address: str, cluster_id: str, token: str, http_url: str = "", page: bool = True
    ) -> None:
        """Tells tools on this machine where the cluster is and lets its owner in."""
        self._write(self.home.token_file, token)
        self._write(self._port_file, address.rpartition(":")[2])
        if http_url:
            self._write(self._http_port_file, http_url.rpartition(":")[2])
        content: dict[str, Any] = {
            "address": address,
            "http_url": http_url,
            "page": page,
            "token_path": str(self.home.token_file),
            "cluster_id": cluster_id,
            "pid": os.getpid(),
        }
        self._write(self.home.endpoint_file, json.dumps(content))

    def last_port(self) -> int:
        """The port of the last start, so that trials that outlived it find the next one; zero for none."""
        # The endpoint file cannot tell: it is there only while a cluster serves.
        return _number_in(self._port_file)

    def last_http_port(self) -> int:
        """The port of HTTP at the last start, so that bookmarks stay right; zero for none."""
        return _number_in(self._http_port_file)

    def write_runs_port(self, port: int) -> None:
        """Notes at which port the runs of this machine reach the services."""
        self._write(self._runs_port_file, str(port))

    def last_runs_port(self) -> int:
        """The port for runs at the last start; zero for none."""
        return _number_in(self._runs_port_file)

    def write_remote_port(self, port: int) -> None:
        """Notes at which port other machines reach gRPC."""
        self._write(self._remote_port_file, str(port))

    def last_remote_port(self) -> int:
        """The port for other machines at the last start; zero for none."""
        return _number_in(self._remote_port_file)

    def forget_service(self) -> None:
        """Forgets where and by whom the home was served."""
        ports = (self._port_file, self._runs_port_file, self._http_port_file, self._remote_port_file)
        for path in (self.home.endpoint_file, self.home.token_file, *ports):
            path.unlink(missing_ok=True)

    def remove_leftovers(self) -> None:
        """Removes what an earlier life was writing when it was killed. Only for the holder of the lock."""
        for partial in self.home.path.glob(".*.tmp"):
            partial.unlink(missing_ok=True)

    def _write(self, path: Path, text: str) -> None:
        self.home.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(path, text, sync=True)

    def live_runs(self) -> int:
        """How many containers of trials run now, whether or not anybody serves the home."""
        return sum(is_locked(lock) for lock in self.runs.glob("*/*/lock"))

    @property
    def _port_file(self) -> Path:
        return self.home.path / "port"

    @property
    def _runs_port_file(self) -> Path:
        return self.home.path / "runs-port"

    @property
    def _remote_port_file(self) -> Path:
        return self.home.path / "remote-port"

    @property
    def _http_port_file(self) -> Path:
        return self.home.path / "http-port"


def _number_in(path: Path) -> int:
    try:
        return int(path.read_text())
    except (FileNotFoundError, ValueError):
        return 0
