"""Trials and their logs as `det trial` prints them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from resolute.cli.determined import metrics
from resolute.cli.determined.spelling import (
    indented,
    moment,
    prefixed,
    seconds_between,
    services,
    shown,
    trial_state,
    unprefixed,
)
from resolute.cli.display.log_lines import TrialLine
from resolute.cli.display.rendering import Heading, Rendering, Table
from resolute.cli.display.trial_table import best_value
from resolute.cli.options.pagination import Page
from resolute.cli.trial.describe import Description
from resolute.client.schema.records import TrialRecord, ValidationRecord
from resolute.client.schema.states import LogLevel


def document(trial: TrialRecord, *, metric: str) -> dict[str, Any]:
    """A trial as JSON.

    Args:
        trial: The trial.
        metric: Name of the metric that its experiment decides by.
    """
    return {
        "bestCheckpoint": None,
        "bestValidation": _validation(trial.best_validation, metric),
        "checkpointCount": None,
        "endTime": moment(trial.end_time),
        "experimentId": trial.experiment_id,
        "hparams": trial.hparams,
        "id": trial.id,
        "latestValidation": _validation(trial.last_validation, metric),
        "logPolicyMatched": None,
        "logRetentionDays": None,
        "metadata": None,
        "restarts": trial.restarts,
        "runnerState": trial.status or None,
        "searcherMetricValue": best_value(trial),
        "startTime": moment(trial.create_time),
        "state": prefixed(trial_state(trial.state)),
        "taskId": task_id(trial.uuid),
        "taskIds": [task_id(trial.uuid)],
        "totalBatchesProcessed": trial.steps_completed,
        "totalCheckpointSize": None,
        "warmStartCheckpointUuid": None,
        "wallClockTime": seconds_between(trial.create_time, trial.end_time),
    }


def task_id(trial_uuid: str) -> str:
    """What ``$DET_TASK_ID`` is in a trial."""
    return f"trial-{trial_uuid}"


def _validation(record: ValidationRecord | None, metric: str) -> dict[str, Any] | None:
    if record is None:
        return None
    return {"metrics": metrics.averages({metric: record.value}), "numInputs": 0, "totalBatches": record.steps}


def _documents(trials: Sequence[TrialRecord]) -> list[dict[str, Any]]:
    owners = {trial.experiment_uuid for trial in trials}
    names = {uuid: services().experiments.get(uuid).searcher_metric for uuid in owners}
    return [document(trial, metric=names[trial.experiment_uuid]) for trial in trials]


def _described(descriptions: Sequence[Description]) -> Any:
    trials = [item.trial for item in descriptions]
    entries = []
    for trial, plain in zip(trials, _documents(trials), strict=True):
        plain["summaryMetrics"] = metrics.summaries(services().metrics.summaries([trial.uuid]))
        workloads = [workload.document() for workload in _workloads([trial])]
        entries.append({"trial": plain, "workloads": workloads})
    return entries[0] if len(entries) == 1 else entries


def _workloads(trials: Sequence[TrialRecord]) -> Iterator[metrics.Workload]:
    """Those that the command is asked for."""
    return Page.of_command().of(metrics.workloads(metrics.steps_of(trials)))


def _line(line: TrialLine) -> dict[str, Any]:
    record = line.line
    level = LogLevel.INFO if record.level is LogLevel.UNSPECIFIED else record.level
    return {
        "agentId": record.agent or None,
        "containerId": record.container or None,
        "id": str(record.line_id),
        "level": level.value,
        "log": record.message,
        "message": f"[{moment(record.time)}] {record.message}\n",
        "rankId": record.rank,
        "source": record.origin or None,
        "stdtype": record.stdtype or None,
        "timestamp": moment(record.time),
        "trialId": line.trial_id,
    }


def _checkpoint_cells(index: int) -> Any:
    def cell(workload: metrics.Workload) -> str | None:
        checkpoint = workload.checkpoint
        if checkpoint is None:
            return None
        return (unprefixed(checkpoint.state), checkpoint.uuid, indented(checkpoint.metadata))[index]

    return cell


def _group(name: str) -> Any:
    def cell(workload: metrics.Workload) -> str | None:
        report = workload.report if workload.group == name else None
        return None if report is None else indented(metrics.averages(report.metrics))

    return cell


_DESCRIBED = (
    Heading("Experiment ID", lambda trial: trial.experiment_id),
    Heading("State", lambda trial: trial_state(trial.state)),
    Heading("H-Params", lambda trial: indented(trial.hparams)),
    Heading(
        "Summary Metrics",
        lambda trial: indented(metrics.summaries(services().metrics.summaries([trial.uuid]))),
    ),
    Heading("Started", lambda trial: shown(trial.create_time)),
    Heading("Ended", lambda trial: shown(trial.end_time)),
)
_WORKLOADS = (
    Heading("# of Batches", lambda workload: workload.steps),
    Heading("Report Time", lambda workload: shown(workload.time)),
    Heading("Checkpoint", _checkpoint_cells(0)),
    Heading("Checkpoint UUID", _checkpoint_cells(1)),
    Heading("Checkpoint Metadata", _checkpoint_cells(2)),
    Heading("Validation Metrics", _group("validation")),
    Heading("Workload Metrics", _group("training"), when="metrics"),
)
_LIST = (
    Heading("Trial ID", lambda trial: trial.id),
    Heading("State", lambda trial: trial_state(trial.state)),
    Heading("H-Params", lambda trial: indented(trial.hparams)),
    Heading("Started", lambda trial: shown(trial.create_time)),
    Heading("Ended", lambda trial: shown(trial.end_time)),
    Heading("# of Batches", lambda trial: trial.steps_completed),
)

LIST = Rendering(_documents, (Table(_LIST),))
"""Of a list of trials."""
_LOGS = Rendering(_line)
RENDERINGS = {
    "trial list": LIST,
    "trial describe": Rendering(
        _described,
        (
            Table(_DESCRIBED, lambda found: [row.trial for row in found]),
            Table(_WORKLOADS, lambda found: _workloads([row.trial for row in found]), "\nWorkloads:"),
        ),
    ),
    "trial logs": _LOGS,
    "experiment logs": _LOGS,
    "task logs": _LOGS,
    "command logs": _LOGS,
    "tensorboard logs": _LOGS,
}
"""By the words of the command."""
