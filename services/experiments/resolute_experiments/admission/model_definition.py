"""Checks of uploaded model definitions."""

from __future__ import annotations

import io

from resolute.contracts.files.archive import check_archive
from resolute.errors import QuotaError

MAX_COMPRESSED = 512 * 1024 * 1024
"""Most bytes of an archive as it comes."""


class Archive:
    """Collects an archive from its chunks, and refuses it as soon as it is too large.

    Args:
        limit: Most bytes.
    """

    def __init__(self, *, limit: int = MAX_COMPRESSED) -> None:
        self._limit = limit
        self._buffer = bytearray()

    def add(self, chunk: bytes) -> None:
        """Takes the next bytes.

        Raises:
            QuotaError: The archive exceeds the limit.
        """
        if len(self._buffer) + len(chunk) > self._limit:
            raise QuotaError(
                f"the model definition exceeds the maximum allowed size of {self._limit} bytes (compressed); "
                "list large files in .detignore and read data from elsewhere"
            )
        self._buffer += chunk

    @property
    def data(self) -> bytes:
        """Everything taken so far."""
        return bytes(self._buffer)


def check(data: bytes) -> frozenset[str]:
    """Makes sure that an archive is whole and that nothing in it can land outside of its directory.

    Returns:
        The paths in it.

    Raises:
        InvalidArgumentError: It is no gzipped tar archive, or an entry is refused; the message names it.
        QuotaError: It unpacks to too much.
    """
    return check_archive(io.BytesIO(data)).names if data else frozenset()
