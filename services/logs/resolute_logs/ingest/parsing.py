"""Parses the messages of batches of lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from resolute.api.logs.v1 import line_pb2
from resolute.api.logs.v1 import logs_service_pb2 as api
from resolute.errors import InvalidArgumentError
from resolute_serving.ingestion.batches import Origin, parse_origin, parse_sequence
from resolute_serving.validation import invalid

MAX_MESSAGE_BYTES = 8 << 10
MAX_NAME_LENGTH = 200
_STDTYPES = frozenset(("", "stdout", "stderr"))
_LEVELS = frozenset(line_pb2.Level.values())
_COLUMNS = ("times", "levels", "ranks", "writer_indexes")

ParsedLine = tuple[int, int, "int | None", str, str, str, str, str]
"""Columns of ``lines``, in order: nanoseconds, level, rank, stdtype, origin, container, agent, message."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive lines of one source."""

    origin: Origin
    first_sequence: int
    lines: Sequence[ParsedLine]

    @property
    def end(self) -> int:
        """The sequence number after the last line of the batch."""
        return self.first_sequence + len(self.lines)


def parse_batch(request: api.IngestLinesRequest) -> Batch:
    """Converts a batch.

    Raises:
        InvalidArgumentError: A field is wrong.
    """
    columns = request.lines
    messages = list(columns.messages)
    for field in _COLUMNS:
        if (length := len(getattr(columns, field))) != len(messages):
            raise invalid(
                f"lines.{field}", f"the column {field} has {length} entries for {len(messages)} messages"
            )
    _check(columns, messages)
    # PostgreSQL cannot store the character, and no terminal shows it.
    texts = [text.replace("\0", "\ufffd") for text in messages]
    ranks = [None if rank < 0 else rank for rank in columns.ranks]
    writers = [(writer.stdtype, writer.origin, writer.container, writer.agent) for writer in columns.writers]
    written = [writers[index] for index in columns.writer_indexes]
    timed = zip(columns.times, columns.levels, ranks, strict=True)
    lines = [(*line, *writer, text) for line, writer, text in zip(timed, written, texts, strict=True)]
    return Batch(parse_origin(request), parse_sequence(request.first_sequence), lines)


def _check(columns: line_pb2.LineColumns, messages: Sequence[str]) -> None:
    """Checks each distinct value once: a batch has thousands of lines with few distinct values."""
    if not messages:
        return
    if not _LEVELS.issuperset(columns.levels):
        raise invalid("lines.levels", f"a line has a level that is none of {sorted(_LEVELS)}")
    if min(columns.writer_indexes) < 0 or max(columns.writer_indexes) >= len(columns.writers):
        raise invalid("lines.writer_indexes", f"a line has a writer that is none of {len(columns.writers)}")
    if not _STDTYPES.issuperset(writer.stdtype for writer in columns.writers):
        raise invalid("lines.writers", "a line has a stdtype that is neither stdout, stderr nor empty")
    _check_names("origin", {writer.origin for writer in columns.writers})
    _check_names("container", {writer.container for writer in columns.writers})
    _check_names("agent", {writer.agent for writer in columns.writers})
    if max(map(len, messages)) * 4 > MAX_MESSAGE_BYTES:
        _check_lengths(messages)


def _check_lengths(messages: Sequence[str]) -> None:
    for number, message in enumerate(messages):
        if len(message) * 4 > MAX_MESSAGE_BYTES and len(message.encode()) > MAX_MESSAGE_BYTES:
            raise _too_long(number, message)


def _check_names(field: str, names: Iterable[str]) -> None:
    for name in names:
        if len(name) > MAX_NAME_LENGTH or "\0" in name:
            raise invalid(
                f"lines.writers.{field}", f"{field} {name[:40]!r} is over {MAX_NAME_LENGTH} characters"
            )


def _too_long(number: int, message: str) -> InvalidArgumentError:
    return invalid(
        f"lines.messages[{number}]",
        f"line {number} of the batch has {len(message.encode())} bytes and may have {MAX_MESSAGE_BYTES}; "
        "split it",
    )
