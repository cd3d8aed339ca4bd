"""What a container says of its end where it has a few kilobytes for that, as in Kubernetes' message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from resolute.api.experiments.v1.allocations_service_pb2 import EarlyExitReason
from resolute.contracts.run.exit_record import ExitRecord

BEGAN = '{"began": true}'
"""What is said while a supervisor lives, and stays if nobody sees its end."""
_MOST_BYTES = 4096
_SHORTEST_FAILURE = 16
_REASONS = frozenset({"", *(name.removeprefix("EARLY_EXIT_REASON_") for name in EarlyExitReason.keys()[1:])})
_LARGEST_CODE = 2**31 - 1
_LATEST_TIME = 253402300799.0
"""The end of the year 9999, beyond which no date goes."""
_FIELDS = (
    "exit_code",
    "acknowledged",
    "early_exit_reason",
    "failure",
    "failed_before_entrypoint",
    "end_time",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastWord:
    """What was said."""

    began: bool
    """Whether a supervisor began."""
    exit: ExitRecord | None
    """How it ended; None if it was lost, or never began."""


def say(record: ExitRecord) -> str:
    """Says how a run ended in at most 4096 bytes: of a long failure its end, and nothing of GPUs."""
    said = {name: getattr(record, name) for name in _FIELDS}
    while len(text := json.dumps(said)) > _MOST_BYTES and len(said["failure"]) > _SHORTEST_FAILURE:
        said["failure"] = said["failure"][len(said["failure"]) // 4 :]
    return text


def hear(text: str) -> LastWord:
    """Reads what was said; anything else was said by something that went wrong before a supervisor began.

    Whoever runs in the container can write there too: a record with values that none has is no record.
    """
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        return LastWord(began=False, exit=None)
    if not said.keys() >= set(_FIELDS):
        return LastWord(began=said == json.loads(BEGAN), exit=None)
    if not _is_record(said):
        return LastWord(began=True, exit=None)
    # What a program printed may hold NUL and halves of characters, which databases refuse.
    failure = said["failure"].replace("\0", "\ufffd").encode(errors="replace").decode()
    values = {name: said[name] for name in _FIELDS}
    return LastWord(began=True, exit=ExitRecord(**{**values, "failure": failure}))


def _is_record(said: Mapping[str, Any]) -> bool:
    code, end = said["exit_code"], said["end_time"]
    return (
        type(code) is int
        and -_LARGEST_CODE <= code <= _LARGEST_CODE
        and isinstance(said["acknowledged"], bool)
        and isinstance(said["failed_before_entrypoint"], bool)
        and isinstance(said["early_exit_reason"], str)
        and said["early_exit_reason"] in _REASONS
        and isinstance(said["failure"], str)
        and len(said["failure"]) <= _MOST_BYTES
        and type(end) in (int, float)
        # NaN is in no range.
        and 0 <= end <= _LATEST_TIME
    )
