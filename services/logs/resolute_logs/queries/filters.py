"""Filters of lines."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from resolute.api.logs.v1 import line_pb2
from resolute_logs.queries.regular_expressions import MAX_LENGTH, Pattern
from resolute_logs.store.schema import lines
from resolute_serving.validation import invalid, parse_uuid

_MAX_CHOICES = 1000


@dataclass(frozen=True, slots=True)
class Filter:
    """The conditions of a filter. All must hold; empty or None always holds."""

    trial_id: str = ""
    """Whose lines; empty where all trials of an experiment are wanted."""
    experiment_id: str = ""
    ranks: tuple[int, ...] = ()
    min_level: int = line_pb2.LEVEL_UNSPECIFIED
    """Lines that say nothing of their severity count as ordinary ones, ``LEVEL_INFO``."""
    start_time: int | None = None
    """Nanoseconds since 1970; only lines written then or later."""
    end_time: int | None = None
    """Nanoseconds since 1970; only lines written before."""
    text: str = ""
    """In any case."""
    pattern: Pattern | None = None
    stdtypes: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    runs: tuple[int, ...] = ()
    containers: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()

    def conditions(self) -> list[sa.ColumnElement[bool]]:
        """Returns the conditions that the database checks."""
        clauses: list[sa.ColumnElement[bool]] = []
        for column, choices in (
            (lines.c.rank, self.ranks),
            (lines.c.stdtype, self.stdtypes),
            (lines.c.origin, self.origins),
            (lines.c.run, self.runs),
            (lines.c.container, self.containers),
            (lines.c.agent, self.agents),
        ):
            if choices:
                clauses.append(column.in_(choices))
        if self.min_level:
            severe = lines.c.level >= self.min_level
            unknown = lines.c.level == line_pb2.LEVEL_UNSPECIFIED
            clauses.append(sa.or_(severe, unknown) if self.min_level <= line_pb2.LEVEL_INFO else severe)
        if self.start_time is not None:
            clauses.append(lines.c.time_ns >= self.start_time)
        if self.end_time is not None:
            clauses.append(lines.c.time_ns < self.end_time)
        if self.text.isascii() and self.text:
            lowered = sa.func.lower(lines.c.message)
            clauses.append(lowered.contains(self.text.lower(), autoescape=True))
        return clauses

    @property
    def topic(self) -> str:
        """The trial or the experiment by which followers wait for new lines."""
        return self.experiment_id or self.trial_id

    @property
    def needs_row_check(self) -> bool:
        """Whether ``matches`` checks more than the conditions."""
        return self.pattern is not None or not self.text.isascii()

    def matches(self, message: str) -> bool:
        """Returns whether a line matches what the database cannot check, or databases check differently."""
        if not self.text.isascii() and self.text.casefold() not in message.casefold():
            return False
        return self.pattern is None or self.pattern.matches(message)


def parse_filter(message: line_pb2.LineFilter, *, field: str = "filter") -> Filter:
    """Reads a filter.

    Args:
        message: The filter.
        field: Names it in errors.

    Raises:
        InvalidArgumentError: A field is wrong.
    """
    for name in ("ranks", "stdtypes", "origins", "runs", "containers", "agents"):
        if len(getattr(message, name)) > _MAX_CHOICES:
            raise invalid(f"{field}.{name}", f"{field}.{name} has more than {_MAX_CHOICES} choices")
    for name in ("text", "regex", "stdtypes", "origins", "containers", "agents"):
        if any("\0" in part for part in getattr(message, name)):
            raise invalid(f"{field}.{name}", f"{field}.{name} holds a NUL character, which no line has")
    if len(message.text) > MAX_LENGTH:
        raise invalid(f"{field}.text", f"{field}.text is longer than {MAX_LENGTH} characters")
    trial_id, experiment_id = _whose(message, field)
    return Filter(
        trial_id=trial_id,
        experiment_id=experiment_id,
        ranks=tuple(message.ranks),
        min_level=message.min_level,
        start_time=message.start_time.ToNanoseconds() if message.HasField("start_time") else None,
        end_time=message.end_time.ToNanoseconds() if message.HasField("end_time") else None,
        text=message.text,
        pattern=Pattern(message.regex, field=f"{field}.regex") if message.regex else None,
        stdtypes=tuple(message.stdtypes),
        origins=tuple(message.origins),
        runs=tuple(message.runs),
        containers=tuple(message.containers),
        agents=tuple(message.agents),
    )


def _whose(message: line_pb2.LineFilter, field: str) -> tuple[str, str]:
    if not message.experiment_id:
        return parse_uuid(message.trial_id, field=f"{field}.trial_id"), ""
    if message.trial_id:
        raise invalid(
            f"{field}.experiment_id",
            f"{field} has a trial_id and an experiment_id; set the one that is wanted",
        )
    return "", parse_uuid(message.experiment_id, field=f"{field}.experiment_id")
