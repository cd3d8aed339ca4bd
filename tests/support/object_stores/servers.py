"""Real object stores on loopback, anyone who's protocol they speak."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from support.object_stores.azure import azure_server
from support.object_stores.gcs import gcs_server
from support.object_stores.s3 import s3_server

from resolute_checkpoints.blobs.buckets.settings import BucketSettings
from resolute_checkpoints.domain.checkpoint import BucketStorage

KINDS = ("s3", "gcs", "azure")


class ObjectServer(Protocol):
    """A store that runs here, and how to reach it."""

    @property
    def secret(self) -> str:
        """What no trial may see."""

    def settings(self, *, create: bool = False) -> BucketSettings:
        """What the service is told of it."""

    def variables(self) -> dict[str, str]:
        """The same, as variables of the service."""

    def section(self, bucket: str) -> dict[str, str]:
        """A config's section for a bucket, with the secret in it where it may hold one."""

    def storage(self, bucket: str, prefix: str = "") -> BucketStorage:
        """A bucket in the service's words."""

    def new_bucket(self) -> str:
        """Makes a bucket of a name that nobody has."""

    def objects(self, bucket: str) -> dict[str, int]:
        """Bytes of what is in a bucket, by name."""

    def put(self, bucket: str, key: str, data: bytes) -> None:
        """Puts an object behind the back of what is tested."""

    def expired_url(self, method: str, bucket: str, key: str) -> str:
        """A URL that ran out an hour ago."""

    def start(self) -> None:
        """Starts the server, at its address of before."""

    def stop(self) -> None:
        """Ends the server."""


@contextmanager
def object_server(kind: str, path: Path, *, lasting: bool = False) -> Iterator[ObjectServer]:
    """Returns a store until the block ends; the test is skipped where it cannot run.

    Args:
        kind: One of ``KINDS``.
        path: Where it may keep objects.
        lasting: Whether its objects are to outlive a stop.
    """
    if kind == "gcs":
        with gcs_server(path, on_disk=lasting) as gcs:
            yield gcs
    elif kind == "azure":
        with azure_server(path) as azure:
            yield azure
    else:
        with s3_server(path) as s3:
            yield s3
