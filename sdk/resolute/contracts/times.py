"""Seconds as the time messages of the contract, and back."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp


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
    moment = Timestamp()
    try:
        moment.FromJsonString(text)  # type: ignore[arg-type]
    except ValueError:
        return 0.0
    return max(0.0, seconds_of(moment))
