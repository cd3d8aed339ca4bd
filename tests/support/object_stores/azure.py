"""A real server of Azure's blob protocol on loopback: Azurite, Microsoft's own, which checks signatures."""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from support.backends import missing
from support.ports import free_port

from resolute_checkpoints.blobs.buckets.settings import BucketSettings
from resolute_checkpoints.domain.checkpoint import BucketStorage, Provider

ACCOUNT = "resolute"
_INSTALLED = Path(__file__).parents[3] / ".cache" / "azurite" / "node_modules" / ".bin" / "azurite-blob"
_START_SECONDS = 30.0


@dataclass
class AzureServer:
    """A storage account, and how to reach it."""

    path: Path
    """Where it keeps blobs."""
    port: int
    secret: str
    """The account's key."""
    process: subprocess.Popen[bytes] | None = None

    @property
    def account_url(self) -> str:
        """Address of the account."""
        return f"http://127.0.0.1:{self.port}/{ACCOUNT}"

    @property
    def connection_string(self) -> str:
        """Address and key in one."""
        words = {
            "DefaultEndpointsProtocol": "http",
            "AccountName": ACCOUNT,
            "AccountKey": self.secret,
            "BlobEndpoint": self.account_url,
        }
        return ";".join(f"{name}={value}" for name, value in words.items())

    def settings(self, *, create: bool = False) -> BucketSettings:
        """What the service is told of it."""
        return BucketSettings(azure_connection_string=self.connection_string, create=create)

    def variables(self) -> dict[str, str]:
        """The same, as variables of the service."""
        return {"RESOLUTE_CHECKPOINTS_AZURE_CONNECTION_STRING": self.connection_string}

    def section(self, bucket: str) -> dict[str, str]:
        """A config's section for a container, with the secret in it."""
        return {"type": "azure", "container": bucket, "connection_string": self.connection_string}

    def storage(self, bucket: str, prefix: str = "") -> BucketStorage:
        """A container in the service's words."""
        return BucketStorage(bucket, prefix, self.account_url, provider=Provider.AZURE)

    def new_bucket(self) -> str:
        """Makes a container of a name that nobody has."""
        name = f"resolute-{uuid.uuid4().hex[:16]}"
        self._client().create_container(name)
        return name

    def objects(self, bucket: str) -> dict[str, int]:
        """Bytes of what is in a container, by name."""
        return {blob.name: blob.size for blob in self._client().get_container_client(bucket).list_blobs()}

    def uncommitted(self, bucket: str) -> list[str]:
        """Names of blobs that are blocks only."""
        container = self._client().get_container_client(bucket)
        every = {blob.name for blob in container.list_blobs(include=["uncommittedblobs"])}
        return sorted(every - self.objects(bucket).keys())

    def put(self, bucket: str, key: str, data: bytes) -> None:
        """Puts a blob behind the back of what is tested."""
        self._client().get_blob_client(bucket, key).upload_blob(data, overwrite=True)

    def remove(self, bucket: str, key: str) -> None:
        """Takes a blob away behind the back of what is tested."""
        self._client().get_blob_client(bucket, key).delete_blob()

    def token(self) -> str:
        """A token that may do everything for an hour."""
        from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas

        return str(
            generate_account_sas(
                ACCOUNT,
                self.secret,
                resource_types=ResourceTypes(service=True, container=True, object=True),
                permission=AccountSasPermissions(read=True, write=True, delete=True, list=True, create=True),
                expiry=datetime.now(timezone.utc) + timedelta(hours=1),
            )
        )

    def expired_url(self, method: str, bucket: str, key: str) -> str:
        """A URL that ran out an hour ago."""
        from azure.storage.blob import BlobSasPermissions, generate_blob_sas

        now = datetime.now(timezone.utc)
        signature = generate_blob_sas(
            account_name=ACCOUNT,
            container_name=bucket,
            blob_name=key,
            account_key=self.secret,
            permission=BlobSasPermissions(read=method == "GET", write=method == "PUT"),
            start=now - timedelta(hours=2),
            expiry=now - timedelta(hours=1),
        )
        return f"{self._client().get_blob_client(bucket, key).url}?{signature}"

    def start(self) -> None:
        """Starts the server, at its address of before."""
        command = [azurite(), "--blobHost", "127.0.0.1", "--blobPort", str(self.port), "--silent"]
        self.process = subprocess.Popen(
            [*command, "--location", str(self.path), "--skipApiVersionCheck", "--disableTelemetry"],
            env={**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{self.secret}"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            assert self.process.poll() is None, "Azurite ended"
            assert time.monotonic() < deadline, "Azurite did not start"
            time.sleep(0.05)

    def stop(self) -> None:
        """Ends the server, which writes its lists on the way."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(_START_SECONDS)
            self.process = None

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _client(self) -> Any:
        from azure.storage.blob import BlobServiceClient

        return BlobServiceClient.from_connection_string(self.connection_string)


def azurite() -> str:
    """The program; the test is skipped where it is not installed."""
    found = shutil.which("azurite-blob") or (str(_INSTALLED) if _INSTALLED.exists() else None)
    if found is None:
        missing("Azurite is not installed (`make azurite`, which needs npm)")
    return found


@contextmanager
def azure_server(path: Path) -> Iterator[AzureServer]:
    """Returns a server of our own until the block ends, with its blobs in ``path``."""
    path.mkdir(parents=True, exist_ok=True)
    server = AzureServer(path, free_port(), base64.b64encode(os.urandom(48)).decode())
    server.start()
    try:
        yield server
    finally:
        server.stop()
