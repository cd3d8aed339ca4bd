"""Imports metrics and lines in a fixed order for each trial, so that a repetition skips imported ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from resolute.api.logs.v1 import line_pb2, logs_service_pb2
from resolute.api.metrics.v1 import metrics_service_pb2
from resolute.client.remote.imports import batches
from resolute.client.services import Services
from resolute.contracts.spool.format import Report as MetricReport
from resolute.contracts.times import seconds_at
from resolute.errors import NotFoundError
from resolute.imports.master import Master, Message
from resolute.imports.report import Report
from resolute.spool.delivery.requests import report_blocks
from resolute.spool.line_splitter import pieces
from resolute.spool.omissions import CountedWarnings
from resolute.spool.values import flatten

_REPORTS_AT_ONCE = 2000
_VALUES_AT_ONCE = 50_000
_LINES_AT_ONCE = 2000
_NUMBERS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
"""Numbers that JSON has no word for, as the master writes them."""
_LEVELS = frozenset(line_pb2.Level.keys())
_RUN = 1
_Line = tuple[bytes, Message]
"""The text of one line, and the message that tells the rest of it."""


@dataclass(frozen=True, kw_only=True)
class TrialHere:
    """An imported trial."""

    number: int
    """Its number on the other cluster."""
    trial_id: str
    """Its UUID here."""
    experiment_id: str
    groups: tuple[str, ...]
    """Groups of metrics that it may have reported."""


@dataclass(frozen=True, kw_only=True)
class Goal:
    """The metric of an experiment, and whether smaller values are better."""

    metric: str
    smaller_is_better: bool


@dataclass
class _Pending:
    """Reports of one trial that are not sent yet."""

    sent: int = 0
    values: int = 0
    reports: list[MetricReport] = field(default_factory=list)

    def add(self, report: MetricReport) -> bool:
        """Keeps one more; says whether they are enough for a call."""
        self.reports.append(report)
        self.values += len(report.values)
        return len(self.reports) >= _REPORTS_AT_ONCE or self.values >= _VALUES_AT_ONCE


class History:
    """Imports metrics and lines.

    Args:
        master: The other cluster.
        services: This cluster.
        report: Counts the imported objects.
    """

    def __init__(self, master: Master, services: Services, report: Report) -> None:
        self._master = master
        self._services = services
        self._report = report

    def bring_metrics(self, trials: Sequence[TrialHere], goal: Goal) -> None:
        """Brings the reports of some trials, of every group: each trial's as one source."""
        pending = {trial.number: _Pending() for trial in trials}
        groups = dict.fromkeys(group for trial in trials for group in trial.groups)
        try:
            for group in groups:
                wanted = {trial.number: trial for trial in trials if group in trial.groups}
                self._bring_group(wanted, group, goal, pending)
        except NotFoundError:
            if any(pending_trial.sent or pending_trial.reports for pending_trial in pending.values()):
                raise
            # A release before there were streams of metrics.
            for trial in trials:
                self._bring_workloads(trial, goal, pending[trial.number])
        for trial in trials:
            self._send_reports(trial, pending[trial.number], goal)

    def bring_lines(self, trial: TrialHere) -> None:
        """Brings what a trial wrote."""
        sent = 0
        order = {"orderBy": "ORDER_BY_ASC", "follow": "false"}
        found = self._master.stream(f"/api/v1/trials/{trial.number}/logs", **order)
        written = (line for message in found for line in _lines_of(message))
        for lines in batches(written, most=_LINES_AT_ONCE, size=_size):
            self._send_lines(trial, sent, lines)
            sent += len(lines)

    def _bring_group(
        self, trials: Mapping[int, TrialHere], group: str, goal: Goal, pending: Mapping[int, _Pending]
    ) -> None:
        fields = {"group": group, "trialIds": list(trials)}
        for result in self._master.stream("/api/v1/trials/metrics/trial_metrics", **fields):
            for message in result.get("metrics") or []:
                number = int(message["trialId"])
                if pending[number].add(self._read(message, group)):
                    self._send_reports(trials[number], pending[number], goal)

    def _bring_workloads(self, trial: TrialHere, goal: Goal, pending: _Pending) -> None:
        """Brings the reports of a release that tells them as workloads."""
        path = f"/api/v1/trials/{trial.number}/workloads"
        for workload in self._master.pages(
            path, "workloads", orderBy="ORDER_BY_ASC", includeBatchMetrics="true"
        ):
            for group in ("training", "validation"):
                found = workload.get(group)
                if found and pending.add(self._read_workload(found, group)):
                    self._send_reports(trial, pending, goal)

    def _read(self, message: Message, group: str) -> MetricReport:
        content: Mapping[str, Any] = message.get("metrics") or {}
        key = "validation_metrics" if group == "validation" else "avg_metrics"
        if content.get("batch_metrics"):
            self._report.remark("metrics of single batches: the average of each report came")
        return self._metric_report(group, message, content.get(key) or {})

    def _read_workload(self, workload: Message, group: str) -> MetricReport:
        content: Mapping[str, Any] = workload.get("metrics") or {}
        if content.get("batchMetrics"):
            self._report.remark("metrics of single batches: the average of each report came")
        return self._metric_report(group, workload, content.get("avgMetrics") or {})

    def _metric_report(self, group: str, message: Message, values: Mapping[str, Any]) -> MetricReport:
        steps, time = int(message.get("totalBatches") or 0), seconds_at(message.get("endTime"))
        if all(type(value) is float or type(value) is int for value in values.values()):
            return MetricReport(group, steps, time, values)
        flat = flatten(values, CountedWarnings(self._report.remark))
        for name, value in flat.items():
            if isinstance(value, str) and value in _NUMBERS:
                flat[name] = _NUMBERS[value]
        return MetricReport(group, steps, time, flat)

    def _send_reports(self, trial: TrialHere, waiting: _Pending, goal: Goal) -> None:
        if not waiting.reports:
            return
        request = metrics_service_pb2.IngestReportsRequest(
            trial_id=trial.trial_id,
            run=_RUN,
            source="import",
            experiment_id=trial.experiment_id,
            first_sequence=waiting.sent,
            count=len(waiting.reports),
            blocks=report_blocks(waiting.sent, waiting.reports),
            searcher_metric=goal.metric or None,
            smaller_is_better=goal.smaller_is_better,
        )
        answer = self._services.imports.reports(request)
        for refusal in answer.refusals:
            self._report.remark(f"reports of metrics that are not kept: {refusal.message}")
        if answer.HasField("dropped"):
            self._report.remark(f"reports beyond the limit of a trial: {answer.dropped.explanation}")
        self._report.add("reports of metrics", sent=len(waiting.reports))
        waiting.sent += len(waiting.reports)
        waiting.reports, waiting.values = [], 0

    def _send_lines(self, trial: TrialHere, sent: int, lines: Sequence[_Line]) -> None:
        request = logs_service_pb2.IngestLinesRequest(
            trial_id=trial.trial_id,
            run=_RUN,
            source="import",
            experiment_id=trial.experiment_id,
            first_sequence=sent,
            lines=_columns(lines),
        )
        self._services.imports.lines(request)
        self._report.add("lines of logs", sent=len(lines))


def groups_of(trial: Message) -> tuple[str, ...]:
    """The groups that a trial may have reported in, as its summary tells."""
    summaries = trial.get("summaryMetrics") or {}
    own = (name for name in summaries if name not in {"avg_metrics", "validation_metrics"})
    return tuple(dict.fromkeys(("training", "validation", *own)))


def _lines_of(message: Message) -> Iterator[_Line]:
    """The lines of one message: several where it is longer than a line may be."""
    text = str(message.get("log") or message.get("message") or "").rstrip("\r\n")
    for piece in pieces(text.encode(errors="replace")):
        yield piece, message


def _size(line: _Line) -> int:
    return len(line[0]) + 100


def _columns(lines: Sequence[_Line]) -> line_pb2.LineColumns:
    writers: dict[tuple[str, str, str, str], int] = {}
    columns = line_pb2.LineColumns()
    for text, line in lines:
        columns.messages.append(text.decode())
        columns.times.append(round(seconds_at(line.get("timestamp")) * 1e6) * 1000)
        columns.levels.append(_level(line))
        rank = line.get("rankId")
        columns.ranks.append(-1 if rank is None else int(rank))
        columns.writer_indexes.append(writers.setdefault(_writer(line), len(writers)))
    for stdtype, origin, container, agent in writers:
        columns.writers.add(stdtype=stdtype, origin=origin, container=container, agent=agent)
    return columns


def _writer(line: Message) -> tuple[str, str, str, str]:
    stdtype = str(line.get("stdtype") or "")
    return (
        stdtype if stdtype in {"stdout", "stderr"} else "",
        str(line.get("source") or "task")[:200],
        str(line.get("containerId") or "")[:200],
        str(line.get("agentId") or "")[:200],
    )


def _level(line: Message) -> line_pb2.Level.ValueType:
    name = str(line.get("level") or "").removeprefix("LOG_")
    return line_pb2.Level.Value(name) if name in _LEVELS else line_pb2.LEVEL_UNSPECIFIED
