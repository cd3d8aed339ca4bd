"""The reports and checkpoints of a trial in the order of their steps, as the workloads of Determined."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from resolute.cli.determined.spelling import moment, prefixed, services, shown, unprefixed
from resolute.cli.display.rendering import Heading
from resolute.client.schema.records import CheckpointRecord, MetricSummary, TrialMetrics, TrialRecord

_GROUPS = {"training": "avg_metrics", "validation": "validation_metrics"}
"""Groups of which there are workloads, with what summaries call them."""


@dataclass
class Step:
    """The reports and the checkpoint of a trial at one number of steps."""

    trial_id: int
    steps: int
    checkpoint: CheckpointRecord | None = None
    reports: dict[str, TrialMetrics] = field(default_factory=dict)
    """By group."""

    @property
    def time(self) -> datetime | None:
        """When the latest of it was reported."""
        return max((time for time, _ in self._times()), default=None)

    @property
    def state(self) -> str:
        """The state of what came first; of training there is none."""
        first = min(self._times(), default=(None, "training"))[1]
        return {"training": "", "validation": "COMPLETED"}.get(first, self.checkpoint_state or "")

    @property
    def checkpoint_state(self) -> str | None:
        """The state of the checkpoint; None if there is none."""
        return unprefixed(self.checkpoint.state) if self.checkpoint is not None else None

    def value(self, group: str, name: str) -> Any:
        """One metric; None if it was not reported."""
        report = self.reports.get(group)
        return None if report is None else report.metrics.get(name)

    def _times(self) -> Iterator[tuple[datetime, str]]:
        """When each part came."""
        for group, report in self.reports.items():
            if report.end_time is not None:
                yield report.end_time, group
        if self.checkpoint is not None and self.checkpoint.commit_time is not None:
            yield self.checkpoint.commit_time, "checkpoint"


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One report of training or validation, or one checkpoint."""

    steps: int
    time: datetime | None
    group: str = ""
    report: TrialMetrics | None = None
    checkpoint: CheckpointRecord | None = None

    def document(self) -> dict[str, Any]:
        """It as JSON."""
        found = {"checkpoint": None, "training": None, "validation": None}
        if self.report is not None:
            return {**found, self.group: reported(self.report)}
        return {**found, "checkpoint": kept(self.checkpoint) if self.checkpoint is not None else None}


def steps_of(trials: Sequence[TrialRecord], reports: Iterable[TrialMetrics] | None = None) -> list[Step]:
    """Reads what there is of trials, by trial and steps.

    Args:
        trials: The trials.
        reports: All their reports, if they were read already; None to read them here.
    """
    if reports is None:
        reports = (report for trial in trials for report in services().metrics.reports(trial))
    steps = dict[tuple[int, int], Step]()

    def step(trial_id: int, count: int) -> Step:
        return steps.setdefault((trial_id, count), Step(trial_id, count))

    for report in reports:
        if report.group in _GROUPS:
            step(report.trial_id, report.steps_completed).reports[report.group] = report
    for trial in trials:
        for checkpoint in services().checkpoints.of_trial(trial.uuid):
            step(trial.id, checkpoint.steps_completed).checkpoint = checkpoint
    return [steps[place] for place in sorted(steps)]


def workloads(steps: Iterable[Step]) -> Iterator[Workload]:
    """The reports and the checkpoints of steps, each for itself."""
    for step in steps:
        for group, report in step.reports.items():
            yield Workload(steps=step.steps, time=report.end_time, group=group, report=report)
        if step.checkpoint is not None:
            time = step.checkpoint.commit_time
            yield Workload(steps=step.steps, time=time, checkpoint=step.checkpoint)


def reported(report: TrialMetrics) -> dict[str, Any]:
    """A report as JSON."""
    return {
        "endTime": moment(report.end_time),
        "metrics": averages(report.metrics),
        "numInputs": 0,
        "totalBatches": report.steps_completed,
    }


def averages(values: Any) -> dict[str, Any]:
    """Metrics as JSON; those of single batches are not stored."""
    return {"avgMetrics": dict(values), "batchMetrics": []}


def kept(checkpoint: CheckpointRecord) -> dict[str, Any]:
    """A checkpoint of a trial as JSON."""
    return {
        "endTime": moment(checkpoint.commit_time),
        "metadata": checkpoint.metadata,
        "resources": resources(checkpoint),
        "state": prefixed(unprefixed(checkpoint.state)),
        "totalBatches": checkpoint.steps_completed,
        "uuid": checkpoint.uuid,
    }


def resources(checkpoint: CheckpointRecord) -> dict[str, str]:
    """The sizes of files by their paths; JSON has numbers of 64 bits as text."""
    return {file.path: str(file.size) for file in checkpoint.files}


def summaries(found: Iterable[MetricSummary]) -> dict[str, Any]:
    """Summaries of metrics as JSON, by group and name."""
    groups: dict[str, dict[str, Any]] = defaultdict(dict)
    for report in found:
        known = {
            "count": report.count,
            "last": report.last,
            "max": report.max,
            "mean": report.mean,
            "min": report.min,
        }
        total = None if report.mean is None else report.mean * report.count
        groups[_GROUPS.get(report.group, report.group)][report.name] = {
            **known,
            "sum": total,
            "type": "string" if isinstance(report.last, str) else "number",
        }
    return dict(groups)


def step_headings(steps: Sequence[Step], *, metrics: bool) -> list[Heading]:
    """Columns of a table of steps, with one for each metric if they are wanted."""
    described = steps if metrics else ()
    return [
        Heading("Trial ID", lambda step: step.trial_id),
        Heading("# of Batches", lambda step: step.steps),
        Heading("State", lambda step: step.state),
        Heading("Report Time", lambda step: shown(step.time)),
        *_metric_headings(described, "training"),
        Heading("Checkpoint State", lambda step: step.checkpoint_state),
        Heading(
            "Checkpoint Report Time", lambda s: shown(s.checkpoint.commit_time) if s.checkpoint else None
        ),
        Heading("Validation State", lambda step: "COMPLETED" if "validation" in step.reports else None),
        Heading(
            "Validation Report Time",
            lambda s: shown(s.reports["validation"].end_time) if "validation" in s.reports else None,
        ),
        *_metric_headings(described, "validation"),
    ]


def _metric_headings(steps: Iterable[Step], group: str) -> list[Heading]:
    names = {name for step in steps if group in step.reports for name in step.reports[group].metrics}
    return [Heading(f"{group.title()} Metric: {name}", _metric(group, name)) for name in sorted(names)]


def _metric(group: str, name: str) -> Callable[[Step], Any]:
    return lambda step: step.value(group, name)
