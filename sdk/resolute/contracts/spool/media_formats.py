"""The accepted formats of images, tables and other media. The first bytes decide, not the declared type.

Formats with scripts that browsers execute, such as SVG and HTML, are not accepted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeGuard

from resolute.contracts.spool.format import MAX_MEDIA_BYTES
from resolute.errors import InvalidArgumentError

MAX_ROWS = 10_000
"""Most rows of a table."""
MAX_COLUMNS = 200
"""Most columns of a table."""
MAX_BINS = 512
"""Most bins of a histogram."""
JSON = "application/json"


class MediaKind(Enum):
    """A kind of object that can be logged beside metrics."""

    IMAGE = "image"
    HISTOGRAM = "histogram"
    TEXT = "text"
    TABLE = "table"
    AUDIO = "audio"
    FIGURE = "figure"


_IMAGES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
_SOUNDS = {
    b"OggS": "audio/ogg",
    b"fLaC": "audio/flac",
    b"ID3": "audio/mpeg",
    b"\xff\xfb": "audio/mpeg",
    b"\xff\xf3": "audio/mpeg",
    b"\xff\xf2": "audio/mpeg",
}
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}


def content_type(kind: MediaKind, content: bytes) -> str:
    """Returns the media type of a content, which its kind must allow.

    Raises:
        InvalidArgumentError: It is too large, or of no format of its kind.
    """
    if len(content) > MAX_MEDIA_BYTES:
        raise InvalidArgumentError(
            f"it has {len(content)} bytes and may have {MAX_MEDIA_BYTES}; log a smaller one, "
            "or put it into a checkpoint"
        )
    if kind is MediaKind.TEXT:
        return _text(content)
    if kind is MediaKind.HISTOGRAM:
        return _histogram(_json(content))
    if kind is MediaKind.TABLE:
        return _table(_json(content))
    if kind is MediaKind.AUDIO:
        return _signed(content, _SOUNDS, "audio/", "WAV, MP3, Ogg and FLAC")
    if kind is MediaKind.FIGURE and content[:1] == b"{":
        return _figure(_json(content))
    return _signed(content, _IMAGES, "image/", "PNG, JPEG, GIF and WebP")


def _signed(content: bytes, signatures: Mapping[bytes, str], family: str, known: str) -> str:
    found = next((name for start, name in signatures.items() if content.startswith(start)), "")
    if content.startswith(b"RIFF"):
        found = _RIFF.get(content[8:12], "")
    if not found.startswith(family):
        raise InvalidArgumentError(f"it is in none of the formats {known}; convert it first")
    return found


def _text(content: bytes) -> str:
    try:
        content.decode()
    except UnicodeDecodeError as error:
        raise InvalidArgumentError("it is not text in UTF-8; encode it so") from error
    return "text/plain"


def _json(content: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError("it is no JSON; log it by the method for its kind") from error
    if not isinstance(value, dict):
        raise InvalidArgumentError("it is no JSON object; log it by the method for its kind")
    return value


def _histogram(value: Mapping[str, Any]) -> str:
    counts, edges = value.get("counts"), value.get("edges")
    if not _numbers(counts) or not _numbers(edges) or len(edges) != len(counts) + 1:
        raise InvalidArgumentError("a histogram has n counts and n + 1 edges; give them both")
    if not 0 < len(counts) <= MAX_BINS:
        raise InvalidArgumentError(f"a histogram has {len(counts)} bins; from 1 to {MAX_BINS} are allowed")
    return JSON


def _table(value: Mapping[str, Any]) -> str:
    columns, rows = value.get("columns"), value.get("rows")
    if not isinstance(columns, list) or not isinstance(rows, list):
        raise InvalidArgumentError("a table has columns and rows; give them both")
    if not 0 < len(columns) <= MAX_COLUMNS or len(rows) > MAX_ROWS:
        raise InvalidArgumentError(
            f"a table has {len(columns)} columns and {len(rows)} rows; from 1 to {MAX_COLUMNS} columns and "
            f"at most {MAX_ROWS} rows are allowed"
        )
    if not all(isinstance(name, str) for name in columns):
        raise InvalidArgumentError("the columns of a table have names that are text; name them so")
    for row in rows:
        if not isinstance(row, list) or len(row) != len(columns):
            raise InvalidArgumentError("a row of a table has a value for each column; fill it up with None")
        if not all(value is None or isinstance(value, (str, int, float)) for value in row):
            raise InvalidArgumentError("a value of a table is a number, a text or None; write it as text")
    return JSON


def _figure(value: Mapping[str, Any]) -> str:
    if not isinstance(value.get("data"), list):
        raise InvalidArgumentError("a figure as JSON has a list `data`, as Plotly writes it")
    return JSON


def _numbers(values: Any) -> TypeGuard[list[float]]:
    return isinstance(values, list) and all(
        isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        for value in values
    )
