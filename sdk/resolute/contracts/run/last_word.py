"""What a container says of its end where it has a few kilobytes for that, as in Kubernetes' message."""

from __future__ import annotations

import json
from dataclasses import dataclass

from resolute.contracts.run.exit_record import ExitRecord

BEGAN = '{"began": true}'
"""What is said while a supervisor lives, and stays if nobody sees its end."""
_MOST_BYTES = 4096
_SHORTEST_FAILURE = 16
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
    try:
        return LastWord(began=True, exit=ExitRecord.parse({name: said[name] for name in _FIELDS}))
    except ValueError:
        return LastWord(began=True, exit=None)
