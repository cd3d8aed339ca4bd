"""Reads a spool from any record on, while it is being written."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from resolute.contracts.spool.format import (
    FILE_HEADER,
    MAGIC,
    MAX_PAYLOAD,
    RECORD_HEADER,
    ROW_HEADER,
    VERSION,
    Line,
    Media,
    RecordType,
    Report,
    Row,
    Schema,
    decode_line,
    decode_media,
    decode_report,
    decode_schema,
)
from resolute.errors import DataLossError

_ROW = int(RecordType.ROW)
"""Compared for each record, which is faster than with the enum's own member."""
Record = Row | Report | Line | Media
"""What is counted by the sequence."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Consecutive rows of one schema as columns, because a drain reads hundreds of thousands a second."""

    schema: Schema
    steps: list[int]
    times: list[float]
    values: tuple[float, ...]
    """Those of the first row in the order of the schema's names, then those of the next."""

    def __iter__(self) -> Iterator[Row]:
        """Yields each row."""
        names = len(self.schema.names)
        for index, (steps, time) in enumerate(zip(self.steps, self.times, strict=True)):
            yield Row(self.schema, steps, time, self.values[index * names : (index + 1) * names])

    def __len__(self) -> int:
        """How many rows."""
        return len(self.steps)


@dataclass(slots=True)
class Chunk:
    """Consecutive records of a spool."""

    first_sequence: int
    content: list[Rows | Report | Line | Media] = field(default_factory=list)
    """The records; consecutive rows of one schema together."""
    begin: int = 0
    """Offset of the first record."""
    ends: list[int] = field(default_factory=list)
    """Offset behind each record."""
    end: int = 0
    """Offset behind the chunk; more than the last of ``ends`` when records that are not counted follow."""
    complete: bool = False
    """Whether the writer has marked the end."""

    def __len__(self) -> int:
        """How many records."""
        return len(self.ends)

    def records(self) -> Iterator[Record]:
        """Yields each record."""
        for item in self.content:
            if isinstance(item, Rows):
                yield from item
            else:
                yield item


class SpoolReader:
    """A position in a spool that advances with each chunk that is read.

    Args:
        path: The spool. A newly created one may be shorter than its header.

    Raises:
        FileNotFoundError: There is no such file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # A pipe that a script has put in its place is as an empty file, and does not block.
        self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._schemas: dict[int, tuple[Schema, struct.Struct]] = {}
        self.offset = 0
        self.sequence = 0

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)

    def size(self) -> int:
        """Bytes of the file at this moment."""
        return os.fstat(self._file).st_size

    def rewind(self) -> None:
        """Goes back to the first record."""
        self.offset = 0
        self.sequence = 0

    def skip_to(self, *, offset: int = 0, sequence: int = 0) -> None:
        """Moves forward over the records that end at or before an offset, and over those below a sequence."""
        while self.offset < offset or self.sequence < sequence:
            chunk = self.peek()
            passed = sum(
                end <= offset or chunk.first_sequence + index < sequence
                for index, end in enumerate(chunk.ends)
            )
            self.take(chunk, passed)
            if passed < len(chunk) or self.offset < chunk.end or not chunk.ends:
                return

    def peek(self, max_bytes: int = 1 << 20, *, after: Chunk | None = None) -> Chunk:
        """Returns the next records without moving; an empty chunk when nothing whole is there yet.

        Args:
            max_bytes: About how many bytes of the file; one record comes whole even if it is larger.
            after: The chunk that was peeked before, to look beyond it.

        Raises:
            DataLossError: The file is no spool, or one of a newer version.
        """
        start = after.end if after is not None else self.offset or self._check_header()
        sequence = after.first_sequence + len(after) if after is not None else self.sequence
        chunk = Chunk(first_sequence=sequence, begin=start, end=start)
        if start:
            data = os.pread(self._file, max_bytes, start)
            if len(data) >= RECORD_HEADER.size:
                needed = RECORD_HEADER.size + RECORD_HEADER.unpack_from(data)[0]
                if len(data) < needed <= RECORD_HEADER.size + MAX_PAYLOAD:
                    data = os.pread(self._file, needed, start)
            self._parse(data, start, chunk)
        return chunk

    def take(self, chunk: Chunk, count: int | None = None) -> None:
        """Moves behind the first records of a chunk just peeked; behind all of it without a count."""
        if count is None or count >= len(chunk):
            self.offset = chunk.end
            self.sequence = chunk.first_sequence + len(chunk)
        elif count:
            self.offset = chunk.ends[count - 1]
            self.sequence = chunk.first_sequence + count

    def _check_header(self) -> int:
        header = os.pread(self._file, FILE_HEADER.size, 0)
        if len(header) < FILE_HEADER.size:
            return 0
        magic, version, _ = FILE_HEADER.unpack(header)
        if magic != MAGIC:
            raise DataLossError(f"{self.path} is not a spool: it begins with {magic!r}")
        if version != VERSION:
            raise DataLossError(
                f"{self.path} is a spool of version {version}; this release reads version {VERSION}"
            )
        return FILE_HEADER.size

    def _parse(self, data: bytes, start: int, chunk: Chunk) -> None:
        position, size = 0, len(data)
        while position + RECORD_HEADER.size <= size:
            begin = position
            length, checksum = RECORD_HEADER.unpack_from(data, begin)
            body = begin + RECORD_HEADER.size
            position = body + length
            if not length or position > size or zlib.crc32(data[body:position]) != checksum:
                return
            kind = data[body]
            if kind == _ROW:
                schema_id = int.from_bytes(data[body + 1 : body + 5], "little")
                position = self._parse_rows(data, begin, start, chunk, schema_id)
                if position == begin:
                    return
            elif kind == RecordType.LINE:
                chunk.content.append(decode_line(data[body:position]))
                chunk.ends.append(start + position)
            elif kind == RecordType.REPORT:
                chunk.content.append(decode_report(data[body:position]))
                chunk.ends.append(start + position)
            elif kind == RecordType.MEDIA:
                chunk.content.append(decode_media(data[body:position]))
                chunk.ends.append(start + position)
            else:
                self._parse_other(kind, data[body:position], chunk)
            chunk.end = start + position

    def _parse_rows(self, data: bytes, position: int, start: int, chunk: Chunk, schema_id: int) -> int:
        """Takes the rows of one schema that follow each other, as nearly all do; returns where they end.

        The first one is there and whole, which makes the rest of them the exception that ends the loop.
        """
        schema, layout = self._schemas[schema_id]
        size, head, checksum = layout.size, RECORD_HEADER.size, zlib.crc32
        whole = (len(data) - position) // size * size
        steps: list[int] = []
        times: list[float] = []
        end = position
        for fields in layout.iter_unpack(memoryview(data)[position : position + whole]):
            length, crc, kind, of, step, time = fields
            if length != size - head or of != schema_id or kind != _ROW:
                break
            if checksum(data[end + head : end + size]) != crc:
                break
            steps.append(step)
            times.append(time)
            end += size
        numbers = range(position + size - 8 * len(schema.names), end, size)
        packed = b"".join([data[at : at + 8 * len(schema.names)] for at in numbers])
        values = struct.unpack(f"<{len(packed) // 8}d", packed)
        chunk.content.append(Rows(schema, steps, times, values))
        chunk.ends.extend(range(start + position + size, start + end + 1, size))
        return end

    def _parse_other(self, kind: int, payload: bytes, chunk: Chunk) -> None:
        if kind == RecordType.SCHEMA:
            schema_id, schema = decode_schema(payload)
            row = ROW_HEADER.format.removeprefix("<")
            # The numbers are skipped here: those of all rows are unpacked at once.
            layout = struct.Struct(f"{RECORD_HEADER.format}{row}{8 * len(schema.names)}x")
            self._schemas[schema_id] = (schema, layout)
        elif kind == RecordType.END:
            chunk.complete = True
        else:
            raise DataLossError(
                f"{self.path} holds a record of unknown type {kind}; read it with a newer release"
            )
