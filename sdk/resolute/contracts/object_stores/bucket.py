"""The protocol of an object store's bucket."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol, TypeVar

from resolute.errors import ResoluteError

BLOCK_BYTES = 1 << 18
"""Bytes that are taken from a connection at a time."""
_CONCURRENCY = 8
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class SignedUpload:
    """The request that uploads one object without credentials."""

    urls: tuple[str, ...]
    """Of its parts, in order."""
    part_size: int = 0
    """Bytes of each part but the last; zero for an object that goes whole."""
    upload_id: str = ""
    """Identifies a multipart upload; empty for an object that goes whole."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """What the store expects with each part."""


class Bucket(Protocol):
    """The objects of one bucket, by their names.

    Several threads call the methods at once. They raise ``UnavailableError`` if the store cannot be reached
    or is busy, ``FailedPreconditionError`` if it refuses the caller or has no such bucket, and ``QuotaError``
    if it is full.
    """

    place: str
    """Names the bucket in messages, without secrets; the first word is the provider's for a bucket."""

    def problem(self, name: str, /) -> str:
        """What is wrong with a name, as the end of a sentence; empty when nothing is. Makes no call."""

    def exists(self) -> bool:
        """Whether the bucket exists."""

    def make(self) -> None:
        """Makes the bucket."""

    def missing(self) -> ResoluteError:
        """Makes the error that says that the bucket does not exist, and what to do."""

    def put(self, key: str, content: BinaryIO, *, size: int) -> None:
        """Writes an object, in the place of an earlier one; it is durable once this returns."""

    def read(self, key: str, *, start: int = 0, size: int = 0) -> Generator[bytes, None, None]:
        """Yields the bytes of an object.

        Args:
            key: Its name.
            start: The first byte; where the object ends before it, there is nothing.
            size: How many bytes at most; zero for all that follow.

        Raises:
            NotFoundError: There is no such object.
        """

    def sizes(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yields the name and the bytes of every object whose name begins so."""

    def delete(self, keys: Iterable[str]) -> None:
        """Removes objects; those that do not exist are removed already."""

    def read_url(self, key: str) -> str:
        """Signs a URL that gives an object, or a range of it."""

    def sign_upload(self, key: str, *, size: int) -> SignedUpload:
        """Signs what puts an object of a size."""

    def finish_upload(self, key: str, *, upload_id: str, tags: Sequence[str]) -> None:
        """Puts the parts of a multipart upload together.

        An upload that is not there was put together before: the sizes of the objects tell.

        Args:
            key: Name of the object.
            upload_id: Identifies the upload.
            tags: What the store answered to each part, in order.
        """

    def abort_upload(self, key: str, *, upload_id: str) -> None:
        """Removes the parts of a multipart upload, if they are there."""


class Store(Protocol):
    """Connections to one store. No request is sent before a bucket is used."""

    address: str
    """Where it is, without anything secret."""

    def bucket(self, name: str) -> Bucket:
        """Returns a bucket of the store."""


def map_concurrently(work: Callable[[_T], None], items: Iterable[_T]) -> None:
    """Does some work on each of many things, a few of them at a time; the first failure is raised."""
    with ThreadPoolExecutor(_CONCURRENCY, thread_name_prefix="resolute-bucket") as pool:
        # The loop raises failures.
        for _ in pool.map(work, items):
            pass
