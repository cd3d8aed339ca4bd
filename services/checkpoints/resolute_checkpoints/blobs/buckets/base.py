"""How the service uses buckets, whoever's they are, and what it needs of each."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import certifi
import urllib3

from resolute.errors import FailedPreconditionError
from resolute_checkpoints.blobs.base import FinishedUpload, Upload
from resolute_checkpoints.blobs.buckets.egress import guard
from resolute_checkpoints.domain.checkpoint import File

CONNECT_SECONDS, READ_SECONDS = 5.0, 60.0
"""How long a store may take to accept a connection, and to send or take something."""
_POOL = 32
_RETRIES = urllib3.Retry(
    total=3, backoff_factor=0.2, status_forcelist=(500, 502, 503, 504), allowed_methods=None
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketSettings:
    """How the service uses buckets."""

    access_key: str = ""
    """S3: key id; empty for what the environment, then the credentials file says."""
    secret_key: str = field(default="", repr=False)
    """S3: secret of the key."""
    region: str = ""
    """S3: region of the buckets; empty to ask the store."""
    gcs_credentials: Path | None = None
    """Google: file with the key of a service account; None for what the environment says."""
    azure_connection_string: str = field(default="", repr=False)
    """Azure: address and key of the account in one."""
    azure_account_url: str = ""
    """Azure: address of the account, where there is no connection string."""
    azure_account_key: str = field(default="", repr=False)
    """Azure: key of the account at that address."""
    allowed: tuple[str, ...] = ()
    """Buckets that may be used, as ``bucket`` or ``endpoint_url/bucket``; empty allows every bucket."""
    create: bool = False
    """Whether buckets that are not there are made."""
    url_seconds: int = 6 * 3600
    """How long a presigned URL can be used."""


class Bucket(Protocol):
    """One bucket, by the library of its provider. Names of objects are whole keys."""

    @property
    def place(self) -> str:
        """Which it is, for messages; the first word is the provider's for a bucket."""

    def errors(self) -> AbstractContextManager[None]:
        """Turns whatever is raised in its block into the platform's errors."""

    def exists(self) -> bool:
        """Whether the bucket is there."""

    def make(self) -> None:
        """Makes the bucket."""

    def problem(self, key: str) -> str:
        """What is wrong with a key, as the end of a sentence; empty when nothing is."""

    def list(self, prefix: str) -> Iterable[tuple[str, int]]:
        """Gives keys that begin with a prefix, and their bytes."""

    def remove(self, keys: Iterable[str]) -> None:
        """Removes objects; those that are not there are removed already."""

    def read_url(self, key: str) -> str:
        """Presigns a URL that gives an object, or a range of it."""

    def upload(self, key: str, file: File) -> Upload:
        """Presigns what puts a file."""

    def finish(self, key: str, upload: FinishedUpload) -> None:
        """Puts parts together. What was put together before is left to a look at the sizes."""

    def drop(self, key: str, upload_id: str) -> None:
        """Removes the parts of an upload that nobody will put together, if they are there."""


class Client(Protocol):
    """Connections to one store. Nothing is asked of it before a bucket is used."""

    address: str
    """Where it is."""
    known_buckets: set[str]
    """Buckets that were seen there."""
    http: urllib3.PoolManager
    """Connections for requests by URL."""

    def bucket(self, name: str) -> Bucket:
        """Gives a bucket of the store."""


def new_pool() -> urllib3.PoolManager:
    """Makes guarded connections that try again what a busy store refuses."""
    return guard(
        urllib3.PoolManager(
            maxsize=_POOL,
            timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS),
            retries=_RETRIES,
            cert_reqs="CERT_REQUIRED",
            ca_certs=os.environ.get("SSL_CERT_FILE") or certifi.where(),
        )
    )


def missing_extra(extra: str, *, what: str) -> FailedPreconditionError:
    """Makes the error of a library that is not installed beside the service."""
    return FailedPreconditionError(
        f"{what} needs a library that is not installed; run `pip install 'resolute-train[server,{extra}]'` "
        "where the checkpoints service runs, and restart it"
    )
