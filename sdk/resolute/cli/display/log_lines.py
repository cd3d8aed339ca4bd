"""Log lines on the command line: their filters and their format."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from resolute.cli.display.local_time import local_time
from resolute.cli.display.output import to_plain
from resolute.cli.display.rendering import rendering
from resolute.cli.display.terminal import direct, neutralised
from resolute.cli.display.tracebacks import Folding
from resolute.client.remote.reports.logs import LineFilter
from resolute.client.schema.records import LineRecord, TrialRecord
from resolute.client.schema.states import LogLevel
from resolute.client.services import Services
from resolute.errors import NotFoundError

if TYPE_CHECKING:
    _TimeType = click.ParamType[datetime]
else:  # generic only in newer releases of click
    _TimeType = click.ParamType


class Timestamp(_TimeType):
    """A time in ISO 8601; without a zone it is local."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Parses the text."""
        if isinstance(value, datetime):
            return value
        try:
            return datetime.fromisoformat(str(value).strip().replace("Z", "+00:00"))
        except ValueError:
            self.fail(f"{value!r} is not a time such as 2030-01-31T12:00:00Z.", param, ctx)


@dataclass(frozen=True)
class TrialLine:
    """A line with the number of its trial."""

    line: LineRecord
    trial_id: int


@dataclass(frozen=True, kw_only=True)
class LogRequest:
    """The log lines that the command line asks for, and their format."""

    follow: bool
    head: int | None
    tail: int | None
    as_json: bool
    allocation_id: str | None
    wanted: LineFilter


_MOST_REDRAWS = 20
"""Carriage returns of a line that are obeyed: each repeats who wrote the line and when."""
_COUNT = click.IntRange(min=0)
_OPTIONS: tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...] = (
    click.option("-f", "--follow", is_flag=True, help="Follow the log until the trial has ended."),
    click.option("--head", type=_COUNT, metavar="N", help="Only the first N lines."),
    click.option("--tail", type=_COUNT, metavar="N", help="Only the last N lines."),
    click.option(
        "--rank-id", "ranks", type=int, multiple=True, metavar="RANK", help="Only lines of this rank."
    ),
    click.option("--run", "runs", type=int, multiple=True, metavar="RUN", help="Only lines of this run."),
    click.option("--allocation-id", metavar="ID", help="Only lines of this allocation."),
    click.option("--agent-id", "agents", multiple=True, metavar="ID", help="Only lines of this machine."),
    click.option(
        "--container-id", "containers", multiple=True, metavar="ID", help="Only lines of this container."
    ),
    click.option("--timestamp-after", "since", type=Timestamp(), help="Only lines since this time."),
    click.option("--timestamp-before", "until", type=Timestamp(), help="Only lines before this time."),
    click.option(
        "--level",
        type=click.Choice([level.name for level in LogLevel][1:], case_sensitive=False),
        help="Only lines of at least this severity.",
    ),
    click.option("--source", "origins", multiple=True, metavar="NAME", help="Only from this part: task, ..."),
    click.option(
        "--stdtype",
        "stdtypes",
        multiple=True,
        type=click.Choice(["stdout", "stderr"]),
        help="Only lines of this stream (repeatable).",
    ),
    click.option("--search", "text", default="", metavar="TEXT", help="Only lines that contain this text."),
    click.option(
        "--regex", default="", metavar="PATTERN", help="Only lines that match this regular expression (RE2)."
    ),
    click.option("--json", "as_json", is_flag=True, help="Print each line as JSON."),
)


def log_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of commands that show lines, which the command gets as ``request``."""

    @wraps(command)
    def wrapped(  # noqa: PLR0913 - click hands over every option
        *args: Any,
        follow: bool,
        head: int | None,
        tail: int | None,
        as_json: bool,
        allocation_id: str | None,
        level: str | None,
        since: datetime | None,
        until: datetime | None,
        text: str,
        regex: str,
        ranks: tuple[int, ...],
        runs: tuple[int, ...],
        agents: tuple[str, ...],
        containers: tuple[str, ...],
        origins: tuple[str, ...],
        stdtypes: tuple[str, ...],
        **options: Any,
    ) -> Any:
        if head is not None and (tail is not None or follow):
            raise click.UsageError("--head cannot be combined with --tail or --follow.")
        wanted = LineFilter(
            ranks=ranks,
            runs=runs,
            agents=agents,
            containers=containers,
            origins=origins,
            stdtypes=stdtypes,
            text=text,
            regex=regex,
            min_level=LogLevel(level.upper()) if level else LogLevel.UNSPECIFIED,
            time_from=since,
            time_until=until,
        )
        request = LogRequest(
            follow=follow,
            head=head,
            tail=tail,
            as_json=as_json,
            allocation_id=allocation_id,
            wanted=wanted,
        )
        return command(*args, request=request, **options)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def print_lines(services: Services, trial: TrialRecord, request: LogRequest) -> None:
    """Prints the wanted lines of a trial.

    Args:
        services: The cluster.
        trial: The trial, with its runs.
        request: Which lines.

    Raises:
        NotFoundError: It has no such allocation.
    """
    lines = services.logs.read(
        trial.uuid,
        _in_allocation(trial, request),
        head=request.head,
        tail=request.tail,
        follow=request.follow,
        finished=lambda: services.trials.get(trial.uuid).state.is_terminal,
    )
    # Lines are neutralised already and may return to their own beginning, as progress bars do.
    file = direct(sys.stdout)
    nothing = True
    for text in _as_json(lines, trial) if request.as_json else map(format_line, lines):
        click.echo(text, file=file)
        nothing = False
    if nothing and 0 not in {request.head, request.tail}:
        click.echo(_nothing(trial, request), err=True)


class FoldedLines:
    """Folds the library frames in tracebacks of a followed log, separately for each process."""

    def __init__(self) -> None:
        self._foldings: dict[Hashable, Folding] = {}
        self._latest: dict[Hashable, LineRecord] = {}

    def add(self, line: LineRecord) -> Iterator[LineRecord]:
        """Takes a line and yields those to show by now."""
        process = (line.run, line.rank, line.container, line.stdtype)
        folding = self._foldings.setdefault(process, Folding())
        self._latest[process] = line
        for text in folding.add(line.message):
            yield replace(line, message=text)

    def end(self) -> Iterator[LineRecord]:
        """Yields what is held back where the log ends."""
        for process, folding in self._foldings.items():
            for text in folding.end():
                yield replace(self._latest[process], message=text)


def format_line(line: LineRecord) -> str:
    """Writes a line for people: when, which rank, what."""
    time = local_time(line.time) if line.time else "-"
    rank = f" [rank={line.rank}]" if line.rank is not None else ""
    container = f" [{line.container}]" if line.container else ""
    prefix = _in_one_line(f"[{time}]{container}{rank} ", colours=False)
    # A carriage return, which progress bars use, must not let a line overwrite who wrote it and when.
    parts = (_in_one_line(part, colours=True) for part in line.message.split("\r", _MOST_REDRAWS))
    return prefix + f"\r{prefix}".join(parts)


def _in_one_line(text: str, *, colours: bool) -> str:
    return neutralised(text.replace("\n", "\u240a"), colours=colours)


def _as_json(lines: Iterable[LineRecord], trial: TrialRecord) -> Iterator[str]:
    rendered = rendering()
    for line in lines:
        document = line if rendered is None else rendered.document(TrialLine(line, trial.id))
        yield neutralised(json.dumps(to_plain(document), ensure_ascii=False))


def _nothing(trial: TrialRecord, request: LogRequest) -> str:
    """Says why no line is there, so that an empty log is not taken for one that is lost."""
    if request.allocation_id is not None or request.wanted != LineFilter():
        return f"no line of trial {trial.id} matches the options"
    if not trial.state.is_terminal and not request.follow:
        return f"trial {trial.id} has printed nothing yet; --follow waits for it"
    metrics = f"resolute trial describe {trial.id} --metrics-summary"
    return f"trial {trial.id} printed nothing; what it reported: {metrics}"


def _in_allocation(trial: TrialRecord, request: LogRequest) -> LineFilter:
    if request.allocation_id is None:
        return request.wanted
    runs = tuple(run.run for run in trial.runs if run.allocation_id == request.allocation_id)
    if not runs:
        raise NotFoundError(f"trial {trial.id} has no allocation {request.allocation_id}")
    return request.wanted.with_runs(runs)
