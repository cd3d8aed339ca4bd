"""Converts between seconds and the time messages of the contract."""

from __future__ import annotations

import re
from datetime import datetime

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

_MOMENT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|([+-]\d\d:\d\d))")


def to_timestamp(seconds: float) -> Timestamp:
    """Unix seconds as a message, rounded to microseconds."""
    message = Timestamp()
    message.FromMicroseconds(round(seconds * 1_000_000))
    return message


def to_duration(seconds: float) -> Duration:
    """Seconds as a message, rounded to microseconds."""
    message = Duration()
    message.FromMicroseconds(round(seconds * 1_000_000))
    return message


def seconds_of(message: Duration | Timestamp) -> float:
    """The seconds of a message; zero for one that is absent."""
    return message.ToMicroseconds() / 1_000_000


def seconds_at(text: object) -> float:
    """The Unix seconds of a moment as RFC 3339 writes it; zero for one before 1970, and for anything else."""
    # Not by Timestamp.FromJsonString: an import reads millions of these, and this takes a tenth of the time.
    found = _MOMENT.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return 0.0
    try:
        whole = datetime.fromisoformat(found[1] + (found[3] or "+00:00"))
    except ValueError:  # such as a thirteenth month
        return 0.0
    micros = int((found[2] or "")[:6].ljust(6, "0"))
    return max(0.0, (round(whole.timestamp()) * 1_000_000 + micros) / 1_000_000)
