"""Packs a model definition: a directory or a file of code, and included files.

Equal content gives equal bytes: entries are sorted, and times and owners are left out.
"""

from __future__ import annotations

import gzip
import os
import tarfile
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, cast, final

from resolute.client.submission.file_tree import Entry, ModelDefinitionError, collect, largest
from resolute.client.submission.ignore_rules import IGNORE_FILE
from resolute.contracts.sizes import human_size
from resolute.transfer.disk import full_disk_errors, is_full_disk

CHUNK_BYTES = 1 << 20
"""Bytes that travel in one message."""
LIMIT_VARIABLE = "RESOLUTE_MODEL_DEFINITION_LIMIT"
"""Environment variable with the most bytes that a model definition may hold before compression."""
DEFAULT_LIMIT = 1 << 30
"""Most bytes of a model definition when the variable is not set."""

_IN_MEMORY = 8 << 20
_MTIME = 315_532_800  # 1980-01-01: the earliest time that zip files, and so wheels, can carry


@final
class Archive:
    """A packed model definition: a gzipped tar in memory or, if large, in an unnamed temporary file.

    Use it as a context manager, which deletes the file.
    """

    def __init__(self, file: IO[bytes], *, entries: Sequence[Entry], content_size: int) -> None:
        self._file = file
        self._lock = threading.Lock()
        self.size = file.seek(0, os.SEEK_END)
        """Bytes, compressed."""
        self.entries = len(entries)
        """Files and directories."""
        self.largest = largest(entries)
        """The largest files with their sizes, as text; empty without files."""
        self.content_size = content_size
        """Bytes of all files before compression."""

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def chunks(self) -> Iterator[bytes]:
        """Yields the archive in pieces of at most ``CHUNK_BYTES``; may be called again for a retry."""
        offset = 0
        while True:
            with self._lock:  # gRPC may still be reading for an abandoned attempt, in its own thread
                self._file.seek(offset)
                chunk = self._file.read(CHUNK_BYTES)
            if not chunk:
                return
            offset += len(chunk)
            yield chunk

    def content(self) -> bytes:
        """The whole archive, for one that is small."""
        return b"".join(self.chunks())

    def close(self) -> None:
        """Removes the temporary file."""
        self._file.close()


def pack(
    model_definition: Path | None = None,
    includes: Sequence[Path] = (),
    *,
    limit: int = DEFAULT_LIMIT,
) -> Archive:
    """Packs a model definition.

    Args:
        model_definition: A directory, whose content becomes the root, or a single file; None for nothing.
        includes: Files and directories that come into the root under their own names.
        limit: Most bytes of all files together, before compression.

    Raises:
        ModelDefinitionError: Something is missing or unreadable, leads outside, has a name that another has
            too, or the whole is larger than ``limit``. It is a ``ValueError`` as well.
        QuotaError: The disk for temporary files is full.
    """
    entries = collect(model_definition, includes, limit=limit)
    file = cast("IO[bytes]", tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY))  # noqa: SIM115 - the archive owns it
    try:
        where = tempfile.gettempdir()
        with full_disk_errors(
            f"pack the model definition in {where}", remedy="free some space or let TMPDIR name another place"
        ):
            size = _write(file, entries)
        if size > limit:
            raise ModelDefinitionError(
                f"the model definition grew to {human_size(size)} while it was packed, "
                f"which exceeds the maximum allowed size of {human_size(limit)}"
            )
        return Archive(file, entries=entries, content_size=size)
    except BaseException:
        file.close()
        raise


def configured_limit(environment: Mapping[str, str]) -> int:
    """Reads the size limit from the environment.

    Raises:
        ModelDefinitionError: The variable is no number of bytes.
    """
    text = environment.get(LIMIT_VARIABLE, "")
    if not text:
        return DEFAULT_LIMIT
    if not text.isdigit():
        raise ModelDefinitionError(f"{LIMIT_VARIABLE} is {text!r}; it must be a number of bytes")
    return int(text)


def _write(file: IO[bytes], entries: Sequence[Entry]) -> int:
    total = 0
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for entry in entries:
            total += _add(archive, entry)
    return total


def _add(archive: tarfile.TarFile, entry: Entry) -> int:
    info = tarfile.TarInfo(entry.name)
    info.mtime = _MTIME
    if entry.directory:
        info.type, info.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(info)
        return 0
    try:
        with entry.source.open("rb") as content:
            status = os.fstat(content.fileno())
            info.size, info.mode = status.st_size, 0o755 if status.st_mode & 0o100 else 0o644
            archive.addfile(info, content)
    except OSError as error:
        if is_full_disk(error):
            raise
        # tarfile raises an OSError without a number when a file turns out shorter than it was.
        if error.strerror is None:
            raise ModelDefinitionError(
                f"{entry.source} shrank while it was read; try again when nothing writes to it"
            ) from error
        raise ModelDefinitionError(
            f"cannot read {entry.source}: {error.strerror}; make it readable or add it to {IGNORE_FILE}"
        ) from error
    return info.size
