"""Converts messages of the contract to plain values. No module outside of this package uses the messages."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from typing import Any

from resolute.api.checkpoints.v1 import checkpoint_pb2, storage_pb2
from resolute.api.experiments.v1 import (
    cluster_service_pb2,
    experiment_pb2,
    job_pb2,
    trial_pb2,
)
from resolute.api.logs.v1 import line_pb2
from resolute.api.metrics.v1 import report_pb2, summary_pb2, validation_pb2
from resolute.client.schema import records
from resolute.contracts.messages import datetime_field, from_message
from resolute.contracts.values import from_value
from resolute.errors import InvalidArgumentError
from resolute.rpc import storage_providers

_NUMBER = re.compile(r"[0-9]{1,18}")


def experiment_key(key: int | str) -> experiment_pb2.ExperimentKey:
    """Names an experiment by its number or its UUID.

    Raises:
        InvalidArgumentError: It is neither.
    """
    number, identifier = _parse_key(key, "an experiment")
    if identifier:
        return experiment_pb2.ExperimentKey(experiment_id=identifier)
    return experiment_pb2.ExperimentKey(number=number)


def trial_key(key: int | str) -> trial_pb2.TrialKey:
    """Names a trial by its number or its UUID.

    Raises:
        InvalidArgumentError: It is neither.
    """
    number, identifier = _parse_key(key, "a trial")
    if identifier:
        return trial_pb2.TrialKey(trial_id=identifier)
    return trial_pb2.TrialKey(number=number)


def checkpoint_id(key: str) -> str:
    """Writes a checkpoint's UUID the way the services do.

    Raises:
        InvalidArgumentError: It is not a UUID.
    """
    try:
        return str(uuid.UUID(key))
    except ValueError as error:
        raise InvalidArgumentError(f"{key!r} is not the UUID of a checkpoint") from error


def _parse_key(key: int | str, noun: str) -> tuple[int, str]:
    text = str(key)
    if _NUMBER.fullmatch(text) and int(text) > 0:
        return int(text), ""
    try:
        return 0, str(uuid.UUID(text))
    except ValueError as error:
        raise InvalidArgumentError(f"{text!r} is neither the number nor the UUID of {noun}") from error


def experiment(message: experiment_pb2.Experiment) -> records.ExperimentRecord:
    """Converts an experiment."""
    return from_message(
        records.ExperimentRecord,
        message,
        id=message.number,
        uuid=message.experiment_id,
        owner=message.owner_name,
        workspace=message.workspace_name,
        project=message.project_name,
        model_definition_size=message.model_definition_bytes,
        explanation=message.wait_reason,
    )


def trial(message: trial_pb2.Trial) -> records.TrialRecord:
    """Converts a trial."""
    return from_message(
        records.TrialRecord,
        message,
        id=message.number,
        uuid=message.trial_id,
        experiment_id=message.experiment_number,
        experiment_uuid=message.experiment_id,
        latest_checkpoint=message.latest_checkpoint_id,
    )


def job(message: job_pb2.Job) -> records.JobRecord:
    """Converts an experiment in the queue."""
    return from_message(
        records.JobRecord,
        message,
        experiment_id=message.experiment_number,
        owner=message.owner_name,
        explanation=message.wait_reason,
    )


def checkpoint(
    message: checkpoint_pb2.Checkpoint, *, files: Sequence[checkpoint_pb2.File] | None = None
) -> records.CheckpointRecord:
    """Converts a checkpoint.

    Args:
        message: The checkpoint.
        files: Its files where they did not fit the message; None for those in it.
    """
    return from_message(
        records.CheckpointRecord,
        message,
        uuid=message.checkpoint_id,
        trial_uuid=message.trial_id,
        experiment_uuid=message.experiment_id,
        files=tuple(map(_file, message.files if files is None else files)),
        storage=storage(message.storage),
    )


def _file(message: checkpoint_pb2.File) -> records.FileRecord:
    home = f"{message.location.checkpoint_id}/{message.location.path}" if message.HasField("location") else ""
    return records.FileRecord(message.path, message.size, message.digest, home)


def storage(message: storage_pb2.Storage) -> records.DirectoryStorage | records.BucketStorage | None:
    """Converts the place of a checkpoint; None for a kind that this client does not know."""
    place = message.WhichOneof("kind")
    if place == "directory":
        return records.DirectoryStorage(message.directory.path)
    kind = storage_providers.kind_of(message.bucket.provider)
    if place == "bucket" and kind:
        bucket = message.bucket
        return records.BucketStorage(bucket.bucket, bucket.prefix, bucket.endpoint_url, kind)
    return None


def line(message: line_pb2.Line) -> records.LineRecord:
    """Converts a line of a log."""
    return from_message(records.LineRecord, message, trial_uuid=message.trial_id)


def best(message: validation_pb2.BestValidation) -> records.BestRecord:
    """Converts the best validation of a trial."""
    return records.BestRecord(message.trial_id, message.metric, message.value, message.steps)


def summary(message: summary_pb2.Summary) -> records.MetricSummary:
    """Converts the summary of a metric."""
    last: Any = message.last_number if message.HasField("last_number") else None
    if message.HasField("last_value"):
        last = from_value(message.last_value)
    return from_message(
        records.MetricSummary,
        message,
        trial_uuid=message.trial_id,
        mean=message.sum / message.count if message.count else None,
        last=last,
    )


def report(message: report_pb2.Report, trial_id: int) -> records.TrialMetrics:
    """Converts one report of the trial with the number ``trial_id``."""
    return records.TrialMetrics(
        trial_id=trial_id,
        trial_run_id=message.run,
        steps_completed=message.steps,
        end_time=datetime_field(message, "time"),
        metrics={name: from_value(value) for name, value in sorted(message.metrics.items())},
        group=message.group,
    )


def cluster(message: cluster_service_pb2.GetClusterResponse) -> records.ClusterRecord:
    """Converts the cluster."""
    return from_message(records.ClusterRecord, message, slots=tuple(map(_slot, message.slots)))


def _slot(message: cluster_service_pb2.Slot) -> records.SlotRecord:
    held = message.HasField("holder")
    return from_message(
        records.SlotRecord,
        message,
        kind=cluster_service_pb2.SlotKind.Name(message.kind).removeprefix("SLOT_KIND_").lower(),
        allocation_id=message.holder.allocation_id or ("hidden" if held else ""),
        trial_id=message.holder.trial_number,
        draining=message.draining and held,
        resource_pool=message.resource_pool or "default",  # a server before there were pools names none
    )
