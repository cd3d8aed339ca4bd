"""The home directory of an embedded cluster, and the lock that allows only one process to serve it."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

from resolute.client.connection.home import Home
from resolute.contracts.run.lock import is_locked
from resolute.errors import FailedPreconditionError
from resolute_embedded.home.databases import HomeDatabases
from resolute_embedded.home.notes import ClusterId, Ports, write_note


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


class StateDirectory:
    """What the home directory of one embedded cluster holds.

    Args:
        home: The home directory. It need not exist.
    """

    def __init__(self, home: Home) -> None:
        self.home = home
        """Its home directory."""
        path = home.path
        self.lock = HomeLock(path / "lock")
        """Lets one process serve it."""
        self.databases = HomeDatabases(path)
        """The databases of the services."""
        self.ports = Ports(path)
        """Where it was served last."""
        self.cluster_id = ClusterId(path / "cluster.json")
        """Who the cluster is."""
        self.data = path / "data"
        """Files of the services, the signing key among them."""
        self.signing_key = self.data / "signing-key.pem"
        """The key that signs the cluster's tokens."""
        self.tls = self.data / "tls"
        """The certificate that the cluster made, with its key."""
        self.runs = path / "runs"
        """One directory a run."""
        self.checkpoints = path / "checkpoints"
        """Checkpoints of experiments that name no other place."""
        self.log = path / "up.log"
        """What a detached cluster logs; older parts of it have a number at the end of their name."""
        self.output = path / "up.out"
        """What a detached cluster wrote to stdout and stderr since its start."""
        self.unfinished_file = path / "unfinished-restore"
        """There while a backup is being restored into the home."""

    def write_endpoint(
        self, *, address: str, cluster_id: str, token: str, http_url: str = "", page: bool = True
    ) -> None:
        """Tells tools on this machine where the cluster is and lets its owner in."""
        write_note(self.home.token_file, token)
        self.ports.people.write(address.rpartition(":")[2])
        if http_url:
            self.ports.http.write(http_url.rpartition(":")[2])
        content: dict[str, Any] = {
            "address": address,
            "http_url": http_url,
            "page": page,
            "token_path": str(self.home.token_file),
            "cluster_id": cluster_id,
            "pid": os.getpid(),
        }
        write_note(self.home.endpoint_file, json.dumps(content))

    def forget_service(self) -> None:
        """Forgets where and by whom the home was served."""
        for path in (self.home.endpoint_file, self.home.token_file):
            path.unlink(missing_ok=True)
        self.ports.forget()

    def remove_leftovers(self) -> None:
        """Removes what an earlier life was writing when it was killed. Only for the holder of the lock."""
        for partial in self.home.path.glob(".*.tmp"):
            partial.unlink(missing_ok=True)

    def live_runs(self) -> int:
        """How many containers of trials run now, whether or not anybody serves the home."""
        return sum(is_locked(lock) for lock in self.runs.glob("*/*/lock"))
