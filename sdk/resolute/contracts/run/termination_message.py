"""The termination message of a container: the end of its run, in a few kilobytes for Kubernetes."""

from __future__ import annotations

import json
from dataclasses import dataclass

from resolute.contracts.run.exit_record import ExitRecord

BEGAN = '{"began": true}'
"""The message while a supervisor runs. It stays if the supervisor is lost."""
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
class TerminationMessage:
    """A parsed termination message."""

    began: bool
    """Whether a supervisor began."""
    exit: ExitRecord | None
    """How it ended; None if it was lost, or never began."""


def write_message(record: ExitRecord) -> str:
    """Writes how a run ended in at most 4096 bytes: a long failure is cut, usage of GPUs left out."""
    fields = {name: getattr(record, name) for name in _FIELDS}
    while len(text := json.dumps(fields)) > _MOST_BYTES and len(fields["failure"]) > _SHORTEST_FAILURE:
        fields["failure"] = fields["failure"][len(fields["failure"]) // 4 :]
    return text


def parse_message(text: str) -> TerminationMessage:
    """Parses a message. Any other text is from a container in which no supervisor began.

    Any process in the container can write there too: a record with values that none has is no record.
    """
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        return TerminationMessage(began=False, exit=None)
    if not fields.keys() >= set(_FIELDS):
        return TerminationMessage(began=fields == json.loads(BEGAN), exit=None)
    try:
        return TerminationMessage(began=True, exit=ExitRecord.parse({name: fields[name] for name in _FIELDS}))
    except ValueError:
        return TerminationMessage(began=True, exit=None)
