"""Checkpoints as `det checkpoint` and `det experiment list-checkpoints` print them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from resolute.cli.determined import metrics
from resolute.cli.determined.spelling import (
    indented,
    moment,
    prefixed,
    services,
    shown,
    size,
    unprefixed,
)
from resolute.cli.determined.trials import task_id
from resolute.cli.display.rendering import Heading, Rendering, Table
from resolute.client.objects.checkpoint_ranking import ValidatedCheckpoint
from resolute.client.schema.records import ExperimentRecord


def documents(checkpoints: Sequence[ValidatedCheckpoint]) -> list[dict[str, Any]]:
    """Checkpoints as JSON."""
    owners = _experiments(checkpoints)
    return [_document(item, owners.get(item.checkpoint.experiment_uuid)) for item in checkpoints]


def _experiments(checkpoints: Sequence[ValidatedCheckpoint]) -> dict[str, ExperimentRecord]:
    """The experiments that wrote checkpoints, by UUID."""
    wanted = {item.checkpoint.experiment_uuid for item in checkpoints if item.trial is not None}
    return {uuid: services().experiments.get(uuid) for uuid in wanted}


def _document(item: ValidatedCheckpoint, experiment: ExperimentRecord | None) -> dict[str, Any]:
    record, trial = item.checkpoint, item.trial
    return {
        "allocationId": f"{record.trial_uuid}.{record.run}" if record.run else None,
        "metadata": record.metadata,
        "reportTime": moment(record.commit_time),
        "resources": metrics.resources(record),
        "state": prefixed(unprefixed(record.state)),
        "storageId": None,
        "taskId": task_id(record.trial_uuid) if record.trial_uuid else None,
        "training": {
            "experimentConfig": experiment.config if experiment else None,
            "experimentId": trial.experiment_id if trial else None,
            "hparams": trial.hparams if trial else None,
            "searcherMetric": item.value(experiment.searcher_metric) if experiment else None,
            "trainingMetrics": metrics.averages({}),
            "trialId": trial.id if trial else None,
            "validationMetrics": metrics.averages(item.metrics),
        },
        "uuid": record.uuid,
    }


def _listed(checkpoints: Sequence[ValidatedCheckpoint]) -> list[tuple[ValidatedCheckpoint, str]]:
    """Checkpoints with the names of the metrics that their experiments decide by."""
    names = {uuid: experiment.searcher_metric for uuid, experiment in _experiments(checkpoints).items()}
    return [(item, names.get(item.checkpoint.experiment_uuid, "")) for item in checkpoints]


_LIST = (
    Heading("Trial ID", lambda row: row[0].trial.id if row[0].trial else None),
    Heading("# of Batches", lambda row: row[0].checkpoint.steps_completed),
    Heading("State", lambda row: unprefixed(row[0].checkpoint.state)),
    Heading("Validation Metric", lambda row: row[0].metrics.get(row[1], "")),
    Heading("UUID", lambda row: row[0].checkpoint.uuid),
    Heading("Resources", lambda row: "\n".join(sorted(metrics.resources(row[0].checkpoint)))),
    Heading("Size", lambda row: size(row[0].checkpoint.total_size)),
)
_DESCRIBED = (
    Heading("Experiment ID", lambda item: item.trial.experiment_id if item.trial else None),
    Heading("Trial ID", lambda item: item.trial.id if item.trial else None),
    Heading("Steps Completed", lambda item: item.checkpoint.steps_completed),
    Heading("Report Time", lambda item: shown(item.checkpoint.commit_time)),
    Heading("Checkpoint UUID", lambda item: item.checkpoint.uuid),
    Heading("Validation Metrics", lambda item: indented(metrics.averages(item.metrics))),
    Heading("Metadata", lambda item: indented(item.checkpoint.metadata)),
)

_AS_LIST = Rendering(documents, (Table(_LIST, _listed),))
RENDERINGS = {
    "checkpoint list": _AS_LIST,
    "experiment list-checkpoints": _AS_LIST,
    "checkpoint describe": Rendering(documents, (Table(_DESCRIBED),)),
}
"""By the words of the command."""
