"""The bytes of a spool: a header, then framed records.

::

    file    = magic 8s · version u32 · reserved u32, then records
    record  = length u32 · crc32 u32 of the payload · payload
    payload = type u8, then by type:
      1 SCHEMA  id u32 · JSON {"group", "names"}
      2 ROW     schema id u32 · steps i64 · time f64 · one f64 for each name
      3 REPORT  JSON {"group", "steps", "time", "values"}: reports with values that are not numbers
      4 LINE    time f64 · stdtype u8 · text
      5 END     nothing: the writer continued in another file, this one is complete
      6 MEDIA   length u32 · JSON of that length {"name", "kind", "steps", "time", "caption"} · content

Numbers are little endian. ROW, REPORT, LINE and MEDIA records are numbered from 0: this is their sequence.
Records are only appended, so a crash can damage only the last one; readers stop before a damaged record.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

MAGIC = b"RSLSPOOL"
VERSION = 1
FILE_HEADER = struct.Struct("<8sII")
RECORD_HEADER = struct.Struct("<II")
METRICS_SUFFIX = ".metrics"
LOGS_SUFFIX = ".logs"
MEDIA_SUFFIX = ".media"
MAX_PAYLOAD = 2 << 20
"""Most bytes of one payload, so that every record fits into a message to a service."""

MAX_MEDIA_BYTES = 2_000_000
"""Most bytes of the content of one image, table and so on, which leaves room for its name and caption."""

MAX_NAME_LENGTH = 500
"""Most characters of a group's or a metric's name."""

SCHEMA_HEADER = struct.Struct("<BI")
ROW_HEADER = struct.Struct("<BIqd")
LINE_HEADER = struct.Struct("<BdB")
MEDIA_HEADER = struct.Struct("<BI")


class RecordType(IntEnum):
    """First byte of a payload."""

    SCHEMA = 1
    ROW = 2
    REPORT = 3
    LINE = 4
    END = 5
    MEDIA = 6


class Stdtype(IntEnum):
    """The stream that a line was written to."""

    PLATFORM = 0
    STDOUT = 1
    STDERR = 2


_STDTYPES = {int(member): member for member in Stdtype}
"""Looked up for each line, which is faster than the enum's own search."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The group and the metric names of a row."""

    group: str
    names: tuple[str, ...]


class Row(NamedTuple):
    """One report whose values are all numbers. A tuple, because a drain creates many thousands a second."""

    schema: Schema
    steps: int
    time: float
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """One report with values that are not numbers."""

    group: str
    steps: int
    time: float
    values: Mapping[str, Any]


class Line(NamedTuple):
    """One line of a log. A tuple, for the same reason as a row."""

    time: float
    stdtype: Stdtype
    text: bytes


@dataclass(frozen=True, slots=True)
class Media:
    """One image, histogram, text, table, sound or figure."""

    name: str
    kind: str
    """Name of the ``MediaKind`` in lower case, such as ``image``."""
    steps: int
    time: float
    content: bytes
    caption: str = ""


def file_header() -> bytes:
    """Returns what every spool begins with."""
    return FILE_HEADER.pack(MAGIC, VERSION, 0)


def frame(payload: bytes) -> bytes:
    """Returns a payload as the bytes of a record."""
    return RECORD_HEADER.pack(len(payload), zlib.crc32(payload)) + payload


def encode_schema(schema_id: int, schema: Schema) -> bytes:
    """Returns the payload of a SCHEMA record."""
    content = json.dumps({"group": schema.group, "names": schema.names}, ensure_ascii=False)
    return SCHEMA_HEADER.pack(RecordType.SCHEMA, schema_id) + content.encode()


def encode_report(report: Report) -> bytes:
    """Returns the payload of a REPORT record. NaN and infinities stay, as Python's JSON writes them."""
    content = {"group": report.group, "steps": report.steps, "time": report.time, "values": report.values}
    return bytes((RecordType.REPORT,)) + json.dumps(content, ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


def encode_line(line: Line) -> bytes:
    """Returns the payload of a LINE record."""
    return LINE_HEADER.pack(RecordType.LINE, line.time, line.stdtype) + line.text


def encode_media(media: Media) -> bytes:
    """Returns the payload of a MEDIA record."""
    head = {"name": media.name, "kind": media.kind, "steps": media.steps, "time": media.time}
    text = json.dumps({**head, "caption": media.caption}).encode()
    return MEDIA_HEADER.pack(RecordType.MEDIA, len(text)) + text + media.content


def decode_schema(payload: bytes) -> tuple[int, Schema]:
    """Returns the identifier and content of a SCHEMA payload."""
    _, schema_id = SCHEMA_HEADER.unpack_from(payload)
    content = json.loads(payload[SCHEMA_HEADER.size :])
    return schema_id, Schema(group=content["group"], names=tuple(content["names"]))


def decode_report(payload: bytes) -> Report:
    """Returns the content of a REPORT payload."""
    return Report(**json.loads(payload[1:].decode("utf-8", "surrogatepass")))


def decode_line(payload: bytes) -> Line:
    """Returns the content of a LINE payload."""
    _, time, stdtype = LINE_HEADER.unpack_from(payload)
    return Line(time, _STDTYPES[stdtype], payload[LINE_HEADER.size :])


def decode_media(payload: bytes) -> Media:
    """Returns the content of a MEDIA payload."""
    _, length = MEDIA_HEADER.unpack_from(payload)
    content = MEDIA_HEADER.size + length
    return Media(**json.loads(payload[MEDIA_HEADER.size : content]), content=payload[content:])
