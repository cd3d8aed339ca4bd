"""Places for checkpoints of scripts that no cluster runs, with a way behind the back of what is tested."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Protocol

from support.object_stores.azure import AzureServer
from support.object_stores.gcs import GcsServer
from support.object_stores.s3 import S3Server


class StorageLocation(Protocol):
    """Somewhere to keep checkpoints, and a way behind the back of what is tested."""

    storage: str | dict[str, str]

    def files(self) -> set[str]:
        """Names of everything that lies there, but for records."""

    def put(self, name: str, data: bytes) -> None:
        """Puts a file there."""

    def remove(self, name: str) -> None:
        """Takes a file away."""


class DirectoryLocation:
    """A directory."""

    def __init__(self, path: Path) -> None:
        self.storage: str | dict[str, str] = str(path)
        self._path = path

    def files(self) -> set[str]:
        found = (path.relative_to(self._path).as_posix() for path in self._path.rglob("*") if path.is_file())
        return {name for name in found if not name.startswith(".records/")}

    def put(self, name: str, data: bytes) -> None:
        (self._path / name).parent.mkdir(parents=True, exist_ok=True)
        (self._path / name).write_bytes(data)

    def remove(self, name: str) -> None:
        (self._path / name).unlink()


class S3Location:
    """A bucket of a real S3 server."""

    def __init__(self, server: S3Server) -> None:
        self._client = server.client()
        self.bucket = server.new_bucket()
        self.storage: str | dict[str, str] = {
            "type": "s3",
            "bucket": self.bucket,
            "prefix": "team/a",
            "endpoint_url": server.endpoint_url,
            "access_key": server.access_key,
            "secret_key": server.secret_key,
        }

    def files(self) -> set[str]:
        found = self._client.list_objects(self.bucket, prefix="team/a/", recursive=True)
        names = ((item.object_name or "").removeprefix("team/a/") for item in found)
        return {name for name in names if not name.startswith(".records/")}

    def put(self, name: str, data: bytes) -> None:
        self._client.put_object(self.bucket, f"team/a/{name}", io.BytesIO(data), len(data))

    def remove(self, name: str) -> None:
        self._client.remove_object(self.bucket, f"team/a/{name}")


class ProviderLocation:
    """A bucket of Google's or a container of Azure's, or rather of servers that speak as they do."""

    def __init__(self, server: AzureServer | GcsServer) -> None:
        self._server = server
        self._bucket = server.new_bucket()
        self.storage: str | dict[str, str] = server.section(self._bucket)
        prefix = server.section(self._bucket).get("prefix", "")
        self._prefix = f"{prefix}/" if prefix else ""

    def files(self) -> set[str]:
        names = (name.removeprefix(self._prefix) for name in self._server.objects(self._bucket))
        return {name for name in names if not name.startswith(".records/")}

    def put(self, name: str, data: bytes) -> None:
        self._server.put(self._bucket, self._prefix + name, data)

    def remove(self, name: str) -> None:
        self._server.remove(self._bucket, self._prefix + name)
