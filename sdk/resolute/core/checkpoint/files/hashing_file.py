"""Hashes a file while a client reads it."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import BinaryIO

from resolute.contracts.files.digests import format_digest, new_hash
from resolute.errors import FailedPreconditionError


class HashingFile(io.RawIOBase):
    """A file for an upload, which hashes each byte when it is read for the first time.

    Clients of stores may seek back to send a part again; this changes neither the digest nor the count.

    Args:
        content: The file, at its beginning.
        size: The announced size in bytes; no more are read.
        count: Called with the number of bytes that were read.
    """

    def __init__(self, content: BinaryIO, size: int, *, count: Callable[[int], None]) -> None:
        super().__init__()
        self._content = content
        self._size = size
        self._count = count
        self._summed = 0
        self._hash = new_hash()

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Moves within the bytes that were announced."""
        return self._content.seek(*((self._size + offset, 0) if whence == io.SEEK_END else (offset, whence)))

    def tell(self) -> int:
        """Where the next byte comes from."""
        return self._content.tell()

    def read(self, size: int | None = -1, /) -> bytes:
        """Returns the next bytes: as many as were asked for, but at the end.

        Raises:
            FailedPreconditionError: The file ended before its time, or cannot be read.
        """
        position = self._content.tell()
        left = max(0, self._size - position)
        wanted = left if size is None or size < 0 else min(size, left)
        try:
            data = self._content.read(wanted)
        except OSError as failure:
            # Not to be taken for a failure of the connection that it is read for.
            raise FailedPreconditionError(
                f"{self._name} cannot be read: {failure}; write it again"
            ) from failure
        if len(data) < wanted:
            raise self._changed()
        # What lies beyond a gap stays out, and the digest then says so.
        fresh = data[self._summed - position :] if position <= self._summed else b""
        self._hash.update(fresh)
        self._summed += len(fresh)
        self._count(len(fresh))
        return data

    def digest(self) -> str:
        """The digest of what was read: everything.

        Raises:
            FailedPreconditionError: The file has other bytes than were announced.
        """
        self._content.seek(self._summed)
        if self._summed != self._size or self._content.read(1):
            raise self._changed()
        return format_digest(self._hash)

    @property
    def _name(self) -> str:
        return str(getattr(self._content, "name", "a file"))

    def _changed(self) -> FailedPreconditionError:
        return FailedPreconditionError(
            f"{self._name} changed while it was uploaded; write a checkpoint's files before you upload them"
        )
