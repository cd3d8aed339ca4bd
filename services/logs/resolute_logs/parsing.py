"""Reads batches of lines from their messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from resolute.api.logs.v1 import logs_service_pb2 as api
from resolute.errors import InvalidArgumentError
from resolute_serving.intake import Origin, invalid, parse_origin, parse_sequence

MAX_MESSAGE_BYTES = 8 << 10
MAX_NAME_LENGTH = 200
_MAX_NANOSECONDS = 2**63 - 1
_STDTYPES = frozenset(("", "stdout", "stderr"))
_LEVELS = frozenset(api.Level.values())

ParsedLine = tuple[int, int, "int | None", str, str, str, str]
"""Time in nanoseconds, level, rank, stdtype, origin, container, message: columns of ``lines``, in order."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive lines of one source."""

    origin: Origin
    first_sequence: int
    lines: Sequence[ParsedLine]

    @property
    def end(self) -> int:
        """The first sequence behind the batch."""
        return self.first_sequence + len(self.lines)


def parse_batch(request: api.IngestLinesRequest) -> Batch:
    """Reads a batch.

    Raises:
        InvalidArgumentError: A field is wrong.
    """
    first = parse_sequence(request.first_sequence)
    batch = Batch(
        parse_origin(request),
        first,
        [
            (
                line.time.seconds * 1_000_000_000 + line.time.nanos,
                line.level,
                line.rank if line.HasField("rank") else None,
                line.stdtype,
                line.origin,
                line.container,
                # PostgreSQL cannot store the character, and no terminal shows it.
                line.message.replace("\0", "\ufffd"),
            )
            for line in request.lines
        ],
    )
    if [line.sequence for line in request.lines] != list(range(first, batch.end)):
        raise invalid("lines", f"the lines must have the sequences from {first} on, without a gap")
    _check(batch.lines)
    return batch


def _check(lines: Sequence[ParsedLine]) -> None:
    """Looks at each distinct value once: a batch has thousands of lines and few of those."""
    if not lines:
        return
    times, levels, _, stdtypes, origins, containers, messages = zip(*lines, strict=True)
    if min(times) < -_MAX_NANOSECONDS or max(times) > _MAX_NANOSECONDS:
        raise invalid("lines.time", "a line has a time that is not within the years 1678 to 2262")
    if not _LEVELS.issuperset(levels):
        raise invalid("lines.level", f"a line has a level that is none of {sorted(_LEVELS)}")
    if not _STDTYPES.issuperset(stdtypes):
        raise invalid("lines.stdtype", "a line has a stdtype that is neither stdout, stderr nor empty")
    _check_names("origin", set(origins))
    _check_names("container", set(containers))
    for number, message in enumerate(messages):
        if len(message) * 4 > MAX_MESSAGE_BYTES and len(message.encode()) > MAX_MESSAGE_BYTES:
            raise _too_long(number, message)


def _check_names(field: str, names: Iterable[str]) -> None:
    for name in names:
        if len(name) > MAX_NAME_LENGTH or "\0" in name:
            raise invalid(f"lines.{field}", f"{field} {name[:40]!r} is over {MAX_NAME_LENGTH} characters")


def _too_long(number: int, message: str) -> InvalidArgumentError:
    return invalid(
        f"lines[{number}].message",
        f"line {number} of the batch has {len(message.encode())} bytes and may have {MAX_MESSAGE_BYTES}; "
        "split it",
    )
