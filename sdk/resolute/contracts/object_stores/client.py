"""What a checkpoint needs of an object store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO, Protocol

BLOCK_BYTES = 1 << 18
"""Bytes that are taken from a connection at a time."""


class ObjectStoreClient(Protocol):
    """The objects of one bucket, by their names.

    Methods are called by several threads at once. They raise ``UnavailableError`` when the store cannot be
    reached or is busy, ``FailedPreconditionError`` when it refuses the caller or has no such bucket, and
    ``QuotaError`` when it is full.
    """

    place: str
    """Names the store in messages, without anything secret."""

    def problem(self, key: str) -> str:
        """What is wrong with a name, as the end of a sentence; empty when nothing is. Asks nobody."""

    def put(self, key: str, content: BinaryIO, *, size: int) -> None:
        """Keeps what is read as an object, in the place of an earlier one; it is safe once this returns."""

    def read(self, key: str, *, start: int = 0, size: int = 0) -> Iterator[bytes]:
        """Yields the bytes of an object.

        Args:
            key: Its name.
            start: The first byte; where the object ends before it, there is nothing.
            size: How many bytes at most; zero for all.

        Raises:
            NotFoundError: There is no such object.
        """

    def sizes(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yields the name and the bytes of every object whose name begins so."""

    def delete(self, keys: Iterable[str]) -> None:
        """Removes objects; those that are not there are removed already."""
