"""Small files in a home that note what the next start needs to know."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from pathlib import Path

from resolute.contracts.files.atomic_files import write_atomically


def write_note(path: Path, text: str) -> None:
    """Writes a file of a home whole or not at all, and makes the home if it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomically(path, text, sync=True)


@dataclass(frozen=True)
class NotedPort:
    """The port of the last start, which the next start takes again: clients know it."""

    path: Path

    def last(self) -> int:
        """The port that was noted; zero for none."""
        try:
            return int(self.path.read_text())
        except (FileNotFoundError, ValueError):
            return 0

    def write(self, port: int | str) -> None:
        """Notes another port."""
        write_note(self.path, str(port))


class Ports:
    """The ports at which a home was served. Unlike the endpoint they stay when the cluster stops.

    Args:
        home: The home directory.
    """

    def __init__(self, home: Path) -> None:
        self.people = NotedPort(home / "port")
        """gRPC, for people and programs of this machine."""
        self.runs = NotedPort(home / "runs-port")
        """gRPC, for the runs of this machine, which may outlive the cluster."""
        self.http = NotedPort(home / "http-port")
        """HTTP, so that bookmarks stay right."""
        self.remote = NotedPort(home / "remote-port")
        """gRPC, for other machines."""

    def forget(self) -> None:
        """Removes what is noted of all of them."""
        for port in (self.people, self.runs, self.http, self.remote):
            port.path.unlink(missing_ok=True)


@dataclass(frozen=True)
class ClusterId:
    """The UUID of the cluster of a home."""

    path: Path

    def get(self) -> str:
        """The id, made at the first start."""
        if not self.path.exists():
            self.renew()
        return str(json.loads(self.path.read_text())["cluster_id"])

    def renew(self) -> None:
        """Gives the cluster another id."""
        write_note(self.path, json.dumps({"cluster_id": str(uuid.uuid4())}))
