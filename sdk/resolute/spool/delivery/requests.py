"""Turns records of a spool into the request messages of services."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import json_format

from resolute.api.checkpoints.v1 import media_pb2, storage_pb2
from resolute.api.checkpoints.v1 import media_service_pb2 as media
from resolute.api.logs.v1 import line_pb2
from resolute.api.logs.v1 import logs_service_pb2 as logs
from resolute.api.metrics.v1 import metrics_service_pb2 as metrics
from resolute.api.metrics.v1 import report_pb2
from resolute.api.searcher.v1 import searcher_service_pb2 as searcher
from resolute.contracts.messages import enum_number
from resolute.contracts.spool.format import Line, Media, Report, Row, Schema, Stdtype
from resolute.contracts.times import to_timestamp
from resolute.contracts.values import to_value
from resolute.spool.line_splitter import MAX_LINE
from resolute.spool.reader import Chunk, Record, Rows
from resolute.spool.values import split_numbers

VALIDATION_GROUP = "validation"
_TRIAL_ORIGIN = "task"
_PLATFORM_ORIGIN = "supervisor"
_RANK = re.compile(r"\[rank=(\d{1,9})\] ?")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_NAMES = "TRACE|DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL"
_LEVEL = re.compile(rf"({_NAMES}):|\[({_NAMES})\]")
_LEVELS: Mapping[str, line_pb2.Level.ValueType] = {
    "TRACE": line_pb2.LEVEL_TRACE,
    "DEBUG": line_pb2.LEVEL_DEBUG,
    "INFO": line_pb2.LEVEL_INFO,
    "WARNING": line_pb2.LEVEL_WARNING,
    "WARN": line_pb2.LEVEL_WARNING,
    "ERROR": line_pb2.LEVEL_ERROR,
    "CRITICAL": line_pb2.LEVEL_CRITICAL,
    "FATAL": line_pb2.LEVEL_CRITICAL,
}
_STDTYPES: Mapping[Stdtype, str] = {Stdtype.PLATFORM: "", Stdtype.STDOUT: "stdout", Stdtype.STDERR: "stderr"}


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """The identity of the run whose reports and lines a run directory holds."""

    trial_id: str
    """UUID of the trial."""
    run: int
    """Run, from 1."""
    experiment_id: str
    """UUID of the experiment."""
    searcher_metric: str = ""
    """Metric that the experiment selects by; empty when it has none."""
    smaller_is_better: bool = True
    """Whether smaller values of it are better."""
    time_metric: str = ""
    """Metric that measures progress, in searches driven by validation reports; empty in others."""
    container: str = ""
    """Container that the lines come from; empty when there is one only."""
    agent: str = ""
    """Machine that the lines come from, by its name within the cluster; empty if unknown."""
    storage: Mapping[str, Any] = field(default_factory=dict)
    """Where the experiment's checkpoints and media are stored, a ``Storage`` as JSON."""


@dataclass(slots=True)
class _Columns:
    """A block of columns that is being filled."""

    sequences: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    extras: list[tuple[int, Mapping[str, Any]]] = field(default_factory=list)

    def add_rows(self, first_sequence: int, rows: Rows) -> None:
        self.sequences.extend(range(first_sequence, first_sequence + len(rows)))
        self.steps.extend(rows.steps)
        self.times.extend(rows.times)
        self.values.extend(rows.values)

    def add_row(self, sequence: int, row: Row, extras: Mapping[str, Any]) -> None:
        if extras:
            self.extras.append((len(self.sequences), extras))
        self.sequences.append(sequence)
        self.steps.append(row.steps)
        self.times.append(row.time)
        self.values.extend(row.values)

    def to_block(self, schema: Schema) -> report_pb2.ReportBlock:
        return report_pb2.ReportBlock(
            group=schema.group,
            names=schema.names,
            sequences=self.sequences,
            steps=self.steps,
            times=self.times,
            values=self.values,
            extras=[
                report_pb2.ReportBlock.Extra(
                    row=row, values={name: to_value(value) for name, value in values.items()}
                )
                for row, values in self.extras
            ],
        )


def report_blocks(first_sequence: int, content: Iterable[Rows | Report]) -> list[report_pb2.ReportBlock]:
    """Packs consecutive reports into columns, one block for each set of names."""
    columns: dict[Schema, _Columns] = {}
    sequence = first_sequence
    for item in content:
        if isinstance(item, Rows):
            columns.setdefault(item.schema, _Columns()).add_rows(sequence, item)
            sequence += len(item)
        else:
            row, extras = split_numbers(item)
            columns.setdefault(row.schema, _Columns()).add_row(sequence, row, extras)
            sequence += 1
    return [block.to_block(schema) for schema, block in columns.items()]


def reports_request(identity: RunIdentity, *, source: str, chunk: Chunk) -> metrics.IngestReportsRequest:
    """Packs the reports of a chunk."""
    reports = [item for item in chunk.content if isinstance(item, (Rows, Report))]
    assert len(reports) == len(chunk.content)
    return metrics.IngestReportsRequest(
        trial_id=identity.trial_id,
        run=identity.run,
        source=source,
        experiment_id=identity.experiment_id,
        first_sequence=chunk.first_sequence,
        count=len(chunk),
        blocks=report_blocks(chunk.first_sequence, reports),
        searcher_metric=identity.searcher_metric or None,
        smaller_is_better=identity.smaller_is_better,
    )


def validations_request(
    identity: RunIdentity, *, source: str, chunk: Chunk
) -> searcher.ReportValidationsRequest | None:
    """Picks the validations out of a chunk, for searches that they drive; None if there are none."""
    if not identity.time_metric:
        return None
    validations = [
        _validation(identity, sequence, record)
        for sequence, record in enumerate(chunk.records(), chunk.first_sequence)
        if _group(record) == VALIDATION_GROUP
    ]
    if not validations:
        return None
    return searcher.ReportValidationsRequest(
        trial_id=identity.trial_id, run=identity.run, source=source, validations=validations
    )


def _group(record: Record) -> str:
    if isinstance(record, Row):
        return record.schema.group
    return record.group if isinstance(record, Report) else ""


def _validation(
    identity: RunIdentity, sequence: int, record: Record
) -> searcher.ReportValidationsRequest.Validation:
    assert isinstance(record, (Row, Report))
    row = record if isinstance(record, Row) else split_numbers(record)[0]
    values = dict(zip(row.schema.names, row.values, strict=True))
    return searcher.ReportValidationsRequest.Validation(
        sequence=sequence,
        metric=values.get(identity.searcher_metric),
        time_metric=values.get(identity.time_metric),
    )


def lines_request(identity: RunIdentity, *, source: str, chunk: Chunk) -> logs.IngestLinesRequest:
    """Packs consecutive lines into columns, with the rank and the severity that their texts tell."""
    messages: list[str] = []
    times: list[int] = []
    levels: list[line_pb2.Level.ValueType] = []
    ranks: list[int] = []
    stdtypes: list[Stdtype] = []
    for line in chunk.content:
        assert isinstance(line, Line)
        rank, text = _split_rank(line.text.decode("utf-8", "replace").rstrip("\r\n"))
        messages.append(_shorten(text))
        times.append(round(line.time * 1e6) * 1000)
        levels.append(level_of(text))
        ranks.append(rank)
        stdtypes.append(line.stdtype)
    writers = sorted(set(stdtypes))
    places = {stdtype: place for place, stdtype in enumerate(writers)}
    return logs.IngestLinesRequest(
        trial_id=identity.trial_id,
        run=identity.run,
        source=source,
        experiment_id=identity.experiment_id,
        first_sequence=chunk.first_sequence,
        lines=line_pb2.LineColumns(
            messages=messages,
            times=times,
            levels=levels,
            ranks=ranks,
            writer_indexes=[places[stdtype] for stdtype in stdtypes],
            writers=[_writer(identity, stdtype) for stdtype in writers],
        ),
    )


def media_request(identity: RunIdentity, *, source: str, chunk: Chunk) -> media.IngestMediaRequest:
    """Packs consecutive media."""
    return media.IngestMediaRequest(
        trial_id=identity.trial_id,
        run=identity.run,
        source=source,
        experiment_id=identity.experiment_id,
        first_sequence=chunk.first_sequence,
        count=len(chunk),
        media=[_logged(item) for item in chunk.content if isinstance(item, Media)],
        storage=json_format.ParseDict(dict(identity.storage), storage_pb2.Storage())
        if identity.storage
        else None,
    )


def _logged(item: Media) -> media.IngestMediaRequest.LoggedMedia:
    return media.IngestMediaRequest.LoggedMedia(
        name=item.name,
        kind=media_pb2.MediaKind.ValueType(enum_number(media_pb2.MediaKind.DESCRIPTOR, item.kind.upper())),
        steps_completed=item.steps,
        log_time=to_timestamp(item.time),
        caption=item.caption or "",
        content=item.content,
    )


def _split_rank(text: str) -> tuple[int, str]:
    """Parts the mark of a rank from a line; the rank is -1 without one."""
    if text.startswith("[rank=") and (match := _RANK.match(text)):
        return int(match[1]), text[match.end() :]
    return -1, text


def _writer(identity: RunIdentity, stdtype: Stdtype) -> line_pb2.LineColumns.Writer:
    return line_pb2.LineColumns.Writer(
        stdtype=_STDTYPES[stdtype],
        origin=_TRIAL_ORIGIN if stdtype else _PLATFORM_ORIGIN,
        container=identity.container,
        agent=identity.agent,
    )


def _shorten(text: str) -> str:
    """Keeps a line under the limit; replaced bytes may have made it longer than it was."""
    if len(text) * 4 <= MAX_LINE or len(data := text.encode()) <= MAX_LINE:
        return text
    return data[:MAX_LINE].decode("utf-8", "ignore")


def level_of(text: str) -> line_pb2.Level.ValueType:
    """Returns the severity that a line begins with, as ``resolute.LOG_FORMAT`` writes it."""
    start = text[:40]
    if "\x1b" in start:
        start = _ANSI.sub("", start)
    match = _LEVEL.match(start)
    return _LEVELS[match[1] or match[2]] if match else line_pb2.LEVEL_UNSPECIFIED
