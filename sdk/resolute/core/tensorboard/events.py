"""Writes reports as TensorBoard events."""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from resolute.contracts.spool.format import Report, Row
from resolute.spool.reader import Record, SpoolReader
from resolute.spool.values import split_numbers

_FILE_VERSION = "brain.Event:2"
REPORTS_SUFFIX = ".reports"
"""Ends the names of files that have reports alone."""


class EventFile:
    """One TensorBoard file, created with the first event.

    Args:
        directory: Directory of the file.

    Raises:
        ImportError: TensorBoard is not installed.
    """

    def __init__(self, directory: Path) -> None:
        # Here and not later in the thread: a process forked during an import can wait for it forever.
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._directory = directory
        self._event: Any = event_pb2.Event
        self._summary: Any = summary_pb2.Summary
        self._record_writer = RecordWriter
        self._writer: Any = None

    def write(self, records: Iterable[Record]) -> None:
        """Appends the numbers of reports, one event each; tags are ``group/name``."""
        rows = [row for record in records for row in _numbers(record)]
        if rows and self._writer is None:
            self._open(rows[0].time)
        for row in rows:
            values = [
                self._summary.Value(tag=f"{row.schema.group}/{name}", simple_value=value)
                for name, value in zip(row.schema.names, row.values, strict=True)
            ]
            self._append(wall_time=row.time, step=row.steps, summary=self._summary(value=values))
        if rows:
            self._writer.flush()

    def close(self) -> None:
        """Closes the file."""
        if self._writer is not None:
            self._writer.close()

    def _open(self, time: float) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        # Never the name that a writer of the script's own would take within the same second.
        name = f"events.out.tfevents.{int(time):010d}.{socket.gethostname()}.{os.getpid()}{REPORTS_SUFFIX}"
        self._writer = self._record_writer((self._directory / name).open("wb"))
        self._append(wall_time=time, file_version=_FILE_VERSION)

    def _append(self, **fields: Any) -> None:
        self._writer.write(self._event(**fields).SerializeToString())


def _numbers(record: Record) -> Iterable[Row]:
    row = split_numbers(record)[0] if isinstance(record, Report) else record
    return (row,) if isinstance(row, Row) and row.values else ()


class SpoolTail:
    """The reports of one process, read from its growing spool.

    Args:
        directory: Directory of the spool.
        pattern: Pattern of the process's file names.
    """

    def __init__(self, directory: Path, pattern: str) -> None:
        self._directory = directory
        self._pattern = pattern
        self._readers: dict[str, SpoolReader] = {}
        self._done: set[str] = set()

    def read(self, max_bytes: int) -> list[Record]:
        """Returns the next reports; an empty list when there are none yet."""
        for path in sorted(self._directory.glob(self._pattern)):
            if path.name not in self._readers and path.name not in self._done:
                self._readers[path.name] = SpoolReader(path)
        return list(
            itertools.chain.from_iterable(self._read_one(name, max_bytes) for name in list(self._readers))
        )

    def close(self) -> None:
        """Closes the files."""
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()

    def _read_one(self, name: str, max_bytes: int) -> list[Record]:
        reader = self._readers[name]
        chunk = reader.peek(max_bytes)
        reader.take(chunk)
        if chunk.complete:
            self._readers.pop(name).close()
            self._done.add(name)
        return list(chunk.records())
