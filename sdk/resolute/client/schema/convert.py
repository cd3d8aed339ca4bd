"""From messages of the contract to plain values. Nothing outside of this package sees the messages."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from datetime import datetime, timezone
from enum import Enum
from typing import Any, TypeVar

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from resolute.api.checkpoints.v1 import checkpoint_pb2, storage_pb2
from resolute.api.experiments.v1 import (
    cluster_service_pb2,
    experiment_pb2,
    job_pb2,
    run_pb2,
    template_pb2,
    trial_pb2,
)
from resolute.api.logs.v1 import line_pb2
from resolute.api.metrics.v1 import report_pb2, summary_pb2, validation_pb2
from resolute.client.schema import records
from resolute.client.schema.states import (
    CheckpointState,
    ExperimentKind,
    ExperimentState,
    LogLevel,
    RunOutcome,
    TrialState,
)
from resolute.contracts.run.gpu_usage import GpuUsage
from resolute.contracts.values import from_value, to_mapping
from resolute.errors import InvalidArgumentError
from resolute.rpc import storage_providers

EnumT = TypeVar("EnumT", bound=Enum)
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


def enum_member(kind: type[EnumT], descriptor: Any, number: int, prefix: str) -> EnumT:
    """Finds the member for a value of the contract; UNSPECIFIED for one that this client does not know.

    Args:
        kind: Our enumeration, with a member UNSPECIFIED.
        descriptor: The generated enumeration.
        number: The value.
        prefix: What the contract puts before every name.
    """
    value = descriptor.DESCRIPTOR.values_by_number.get(number)
    name = value.name[len(prefix) :] if value is not None else "UNSPECIFIED"
    return kind[name] if name in kind.__members__ else kind["UNSPECIFIED"]


def datetime_field(message: Message, field: str) -> datetime | None:
    """Reads a timestamp field, in UTC; None when it is not set."""
    if not message.HasField(field):
        return None
    stamp: Timestamp = getattr(message, field)
    return stamp.ToDatetime(tzinfo=timezone.utc)


def experiment(message: experiment_pb2.Experiment) -> records.ExperimentRecord:
    """Converts an experiment."""
    return records.ExperimentRecord(
        id=message.number,
        uuid=message.experiment_id,
        name=message.name,
        description=message.description,
        labels=tuple(message.labels),
        state=enum_member(
            ExperimentState, experiment_pb2.ExperimentState, message.state, prefix="EXPERIMENT_STATE_"
        ),
        activity=_activity(message.activity),
        archived=message.archived,
        owner=message.owner_name,
        workspace=message.workspace_name,
        project=message.project_name,
        workspace_id=message.workspace_id,
        project_id=message.project_id,
        progress=message.progress,
        config=to_mapping(message.config) if message.HasField("config") else None,
        create_time=datetime_field(message, "create_time"),
        end_time=datetime_field(message, "end_time"),
        trial_count=message.trial_count,
        searcher_name=message.searcher_name,
        searcher_metric=message.searcher_metric,
        smaller_is_better=message.smaller_is_better,
        failure=message.failure,
        revision=message.revision,
        model_definition_size=message.model_definition_bytes,
        unmanaged=message.unmanaged,
        external_id=message.external_id,
        explanation=message.wait_reason,
        warning=message.warning,
        notes=message.notes,
        etag=message.etag,
        source=_source(message.source) if message.HasField("source") else None,
        kind=enum_member(
            ExperimentKind, experiment_pb2.ExperimentKind, message.kind, prefix="EXPERIMENT_KIND_"
        ),
    )


def _source(message: experiment_pb2.CodeSource) -> records.SourceRecord:
    return records.SourceRecord(
        git_commit=message.git_commit,
        git_branch=message.git_branch,
        git_diff=message.git_diff,
        git_diff_truncated=message.git_diff_truncated,
    )


def _activity(number: int) -> str:
    value = experiment_pb2.ExperimentActivity.DESCRIPTOR.values_by_number.get(number)
    return value.name.removeprefix("EXPERIMENT_ACTIVITY_") if value is not None and number else ""


def trial(message: trial_pb2.Trial) -> records.TrialRecord:
    """Converts a trial."""
    return records.TrialRecord(
        id=message.number,
        uuid=message.trial_id,
        experiment_id=message.experiment_number,
        experiment_uuid=message.experiment_id,
        trial_key=message.trial_key,
        state=enum_member(TrialState, trial_pb2.TrialState, message.state, prefix="TRIAL_STATE_"),
        hparams=to_mapping(message.hparams),
        seed=message.seed,
        restarts=message.restarts,
        run=message.run,
        status=message.status,
        explanation=message.explanation,
        latest_checkpoint=message.latest_checkpoint_id,
        steps_completed=message.steps_completed,
        create_time=datetime_field(message, "create_time"),
        end_time=datetime_field(message, "end_time"),
        revision=message.revision,
        runs=tuple(run(item) for item in message.runs),
        pids=tuple(message.pids),
        endpoints=tuple(message.endpoints),
        excluded_nodes=tuple(message.excluded_nodes),
        lost_steps=message.lost_steps,
        best_validation=_validation(message, "best_validation"),
        last_validation=_validation(message, "last_validation"),
    )


def _validation(message: trial_pb2.Trial, field: str) -> records.ValidationRecord | None:
    if not message.HasField(field):  # type: ignore[arg-type]
        return None
    found: trial_pb2.Validation = getattr(message, field)
    return records.ValidationRecord(found.value if found.HasField("value") else None, found.steps)


def run(message: run_pb2.Run) -> records.RunRecord:
    """Converts a run."""
    return records.RunRecord(
        run=message.run,
        allocation_id=message.allocation_id,
        outcome=enum_member(RunOutcome, run_pb2.RunOutcome, message.outcome, prefix="RUN_OUTCOME_"),
        exit_code=message.exit_code if message.HasField("exit_code") else None,
        initialize_time=datetime_field(message, "initialize_time"),
        start_time=datetime_field(message, "start_time"),
        end_time=datetime_field(message, "end_time"),
        slot_ids=tuple(message.slot_ids),
        failure=message.failure,
        log_policies=tuple(message.log_policies),
        gpu_usage=_gpu_usage(message.gpu_usage) if message.HasField("gpu_usage") else None,
        trace_id=message.trace_id,
        lost_steps=message.lost_steps if message.HasField("lost_steps") else None,
    )


def _gpu_usage(message: run_pb2.GpuUsage) -> GpuUsage:
    return GpuUsage(
        energy_joules=message.energy_joules if message.HasField("energy_joules") else None,
        busy_seconds=message.busy_seconds,
        measured_seconds=message.measured_seconds,
    )


def job(message: job_pb2.Job) -> records.JobRecord:
    """Converts an experiment in the queue."""
    return records.JobRecord(
        experiment_id=message.experiment_number,
        name=message.name,
        owner=message.owner_name,
        state=enum_member(
            ExperimentState, experiment_pb2.ExperimentState, message.state, prefix="EXPERIMENT_STATE_"
        ),
        priority=message.priority,
        weight=message.weight,
        max_slots=message.max_slots if message.HasField("max_slots") else None,
        slots_per_trial=message.slots_per_trial,
        held_slots=message.held_slots,
        queued_trials=message.queued_trials,
        allocated_trials=message.allocated_trials,
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
    return records.CheckpointRecord(
        uuid=message.checkpoint_id,
        state=enum_member(
            CheckpointState, checkpoint_pb2.CheckpointState, message.state, prefix="CHECKPOINT_STATE_"
        ),
        trial_uuid=message.trial_id,
        experiment_uuid=message.experiment_id,
        run=message.run,
        steps_completed=message.steps_completed,
        files=tuple(
            records.FileRecord(file.path, file.size, file.digest, _location(file))
            for file in (message.files if files is None else files)
        ),
        metadata=to_mapping(message.metadata),
        create_time=datetime_field(message, "create_time"),
        commit_time=datetime_field(message, "commit_time"),
        total_size=message.total_size,
        storage=storage(message.storage),
        file_count=message.file_count,
        pinned=message.pinned,
        inherited=message.inherited,
    )


def _location(file: checkpoint_pb2.File) -> str:
    return f"{file.location.checkpoint_id}/{file.location.path}" if file.HasField("location") else ""


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
    return records.LineRecord(
        line_id=message.line_id,
        time=datetime_field(message, "time"),
        message=message.message,
        level=enum_member(LogLevel, line_pb2.Level, message.level, prefix="LEVEL_"),
        rank=message.rank if message.HasField("rank") else None,
        stdtype=message.stdtype,
        run=message.run,
        trial_uuid=message.trial_id,
        origin=message.origin,
        container=message.container,
        agent=message.agent,
    )


def best(message: validation_pb2.BestValidation) -> records.BestRecord:
    """Converts the best validation of a trial."""
    return records.BestRecord(message.trial_id, message.metric, message.value, message.steps)


def summary(message: summary_pb2.Summary) -> records.MetricSummary:
    """Converts the summary of a metric."""
    last: Any = message.last_number if message.HasField("last_number") else None
    if message.HasField("last_value"):
        last = from_value(message.last_value)
    return records.MetricSummary(
        trial_uuid=message.trial_id,
        group=message.group,
        name=message.name,
        count=message.count,
        mean=message.sum / message.count if message.count else None,
        min=message.min if message.HasField("min") else None,
        max=message.max if message.HasField("max") else None,
        last=last,
        last_steps=message.last_steps,
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
    return records.ClusterRecord(
        cluster_id=message.cluster_id,
        version=message.version,
        slots=tuple(
            records.SlotRecord(
                slot.slot_id,
                cluster_service_pb2.SlotKind.Name(slot.kind).removeprefix("SLOT_KIND_").lower(),
                slot.holder.allocation_id or ("hidden" if slot.HasField("holder") else ""),
                slot.holder.trial_number,
                slot.node,
                slot.disabled,
                slot.draining and slot.HasField("holder"),
                slot.resource_pool or "default",  # a server before there were pools names none
            )
            for slot in message.slots
        ),
        queued_trials=message.queued_trials,
        problems=tuple(message.problems),
        resource_pools=tuple(
            records.PoolRecord(pool.name, pool.placed_by_engine) for pool in message.resource_pools
        ),
    )


def template(message: template_pb2.Template) -> records.TemplateRecord:
    """Converts a template."""
    return records.TemplateRecord(message.name, to_mapping(message.config))
