"""Converts messages about checkpoints to and from the registry's values, and checks requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from resolute.api.checkpoints.v1 import checkpoint_pb2 as messages
from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as requests
from resolute.api.checkpoints.v1 import storage_pb2
from resolute.contracts.messages import enum_number, to_message
from resolute.contracts.times import seconds_of
from resolute.contracts.values import to_mapping
from resolute_checkpoints.blobs.base import FinishedUpload
from resolute_checkpoints.domain.checkpoint import (
    BucketStorage,
    Checkpoint,
    DirectoryStorage,
    File,
    Home,
    Owner,
    Provider,
    State,
    Storage,
)
from resolute_checkpoints.domain.manifest import Manifest, check_file
from resolute_checkpoints.domain.paths import check_path
from resolute_checkpoints.registry.checkpoints import Begin, Commit
from resolute_checkpoints.retention.enforcement import RetentionRequest, Validation
from resolute_checkpoints.retention.policy import RetentionPolicy
from resolute_checkpoints.servicers.identifiers import parse_optional_uuid, parse_uuid
from resolute_serving.updates import etag_of
from resolute_serving.validation import invalid_field

MAX_IDS = 1000
"""Most checkpoints or files that one request may name."""
MAX_REUSED = 10_000
"""Most files that one request may ask to reuse: the store is asked once for all of them."""
MAX_RETENTION_ITEMS = 50_000
"""Most items of each kind that one request for retention may name."""

_STATES: Mapping[int, State] = {
    enum_number(messages.CheckpointState.DESCRIPTOR, state.name): state for state in State
}
_PROVIDERS: Mapping[storage_pb2.Storage.Provider.ValueType, Provider] = {
    storage_pb2.Storage.PROVIDER_S3: Provider.S3,
    storage_pb2.Storage.PROVIDER_GCS: Provider.GCS,
    storage_pb2.Storage.PROVIDER_AZURE: Provider.AZURE,
}
_PROVIDER_MESSAGES = {provider: message for message, provider in _PROVIDERS.items()}


def to_begin(
    request: requests.BeginCheckpointRequest, *, workspace: str, workspace_id: int | None, recorded: bool
) -> Begin:
    """Converts a BeginCheckpointRequest.

    Args:
        request: The request.
        workspace: Name of the caller's workspace.
        workspace_id: Id of the caller's workspace; None when it has none.
        recorded: Whether the config of the caller's experiment names that storage.

    Raises:
        InvalidArgumentError: A field is wrong.
    """
    trial_id = parse_optional_uuid(request.trial_id, field="trial_id")
    experiment_id = parse_optional_uuid(request.experiment_id, field="experiment_id")
    if trial_id and not experiment_id:
        raise invalid_field("experiment_id", "is empty; a checkpoint of a trial belongs to an experiment")
    if request.run < (1 if trial_id else 0):
        raise invalid_field("run", f"is {request.run}; runs of a trial count from 1")
    return Begin(
        checkpoint_id=parse_uuid(request.checkpoint_id, field="checkpoint_id"),
        owner=Owner(
            trial_id=trial_id,
            experiment_id=experiment_id,
            run=request.run,
            workspace=workspace,
            workspace_id=workspace_id,
        ),
        storage=to_storage(request.storage),
        recorded=recorded,
    )


def to_commit(request: requests.CommitCheckpointRequest) -> Commit:
    """Converts a CommitCheckpointRequest.

    Raises:
        InvalidArgumentError: A field is wrong.
    """
    return Commit(
        checkpoint_id=parse_uuid(request.checkpoint_id, field="checkpoint_id"),
        run=request.run,
        manifest=Manifest.checked([_to_file(file) for file in request.files], to_mapping(request.metadata)),
        uploads=tuple(
            FinishedUpload(
                path=check_path(part.path, field=f"multipart_uploads[{index}].path"),
                upload_id=part.upload_id,
                etags=tuple(part.part_etags),
            )
            for index, part in enumerate(request.multipart_uploads)
        ),
    )


def to_retention_request(experiment_id: str, rules: requests.RetentionRules) -> RetentionRequest:
    """Converts a request of retention.

    Raises:
        InvalidArgumentError: A field is wrong.
    """
    for name in (
        "validations",
        "kept_checkpoint_ids",
        "ranked_checkpoint_ids",
        "awaited_trial_ids",
        "good_steps",
    ):
        require_count(getattr(rules, name), field=f"rules.{name}", limit=MAX_RETENTION_ITEMS)
    return RetentionRequest(
        experiment_id=parse_uuid(experiment_id, field="experiment_id"),
        policy=RetentionPolicy(
            save_experiment_best=rules.save_experiment_best,
            save_trial_best=rules.save_trial_best,
            save_trial_latest=rules.save_trial_latest,
            keep_every_steps=rules.keep_every_steps,
            keep_every_seconds=rules.keep_every_seconds,
            keep_restorable=rules.keep_restorable,
        ),
        smaller_is_better=rules.smaller_is_better,
        validations={
            (validation.trial_id, validation.steps_completed): Validation(
                validation.value, seconds_of(validation.report_time)
            )
            for validation in rules.validations
        },
        ranked=frozenset(rules.ranked_checkpoint_ids),
        sources=frozenset(rules.kept_checkpoint_ids),
        awaited=frozenset(rules.awaited_trial_ids),
        good_steps={good.trial_id: good.steps for good in rules.good_steps},
    )


def to_min_run(request: requests.FenceTrialRequest) -> int:
    """Returns the lowest run number that is not superseded.

    Raises:
        InvalidArgumentError: It is below 1.
    """
    if request.min_run < 1:
        raise invalid_field("min_run", f"is {request.min_run}; runs of a trial count from 1")
    return request.min_run


def to_files(files: Sequence[messages.File], *, limit: int = MAX_IDS) -> list[File]:
    """Reads the files of a request.

    Raises:
        InvalidArgumentError: One is wrong, or there are more than ``limit``.
    """
    require_count(files, field="files", limit=limit)
    result = [_to_file(file) for file in files]
    for index, file in enumerate(result):
        check_file(file, field=f"files[{index}]")
    return result


def require_count(items: Sequence[object], *, field: str, limit: int = MAX_IDS, least: int = 0) -> None:
    """Checks that a field does not have more entries than a request may have.

    Raises:
        InvalidArgumentError: It has more than ``limit`` or less than ``least``.
    """
    if len(items) < least:
        raise invalid_field(field, f"has {len(items)} entries; send at least {least}")
    if len(items) > limit:
        raise invalid_field(field, f"has {len(items)} entries; send at most {limit} at once")


def to_storage(message: storage_pb2.Storage) -> Storage:
    """Converts a storage.

    Raises:
        InvalidArgumentError: Neither a directory nor a bucket is named, or the provider is not known.
    """
    kind = message.WhichOneof("kind")
    if kind == "directory" and message.directory.path:
        return DirectoryStorage(message.directory.path)
    if kind == "bucket" and message.bucket.bucket:
        return _to_bucket(message.bucket)
    raise invalid_field("storage", "names neither a directory nor a bucket; name one of them")


def _to_bucket(message: storage_pb2.Storage.Bucket) -> BucketStorage:
    provider = _PROVIDERS.get(message.provider)
    if provider is None:
        known = ", ".join(storage_pb2.Storage.Provider.Name(value) for value in _PROVIDERS)
        raise invalid_field("storage.bucket.provider", f"is {message.provider}; it must be one of {known}")
    return BucketStorage(message.bucket, message.prefix, message.endpoint_url, provider=provider)


def to_states(states: Sequence[messages.CheckpointState.ValueType]) -> frozenset[State]:
    """Converts the states of a list's filter; an empty filter stays empty.

    Raises:
        InvalidArgumentError: One is not known here.
    """
    unknown = [state for state in states if state not in _STATES]
    if unknown:
        raise invalid_field("states", f"holds {unknown[0]}, which is not a state that a checkpoint can have")
    return frozenset(_STATES[state] for state in states)


def from_checkpoint(checkpoint: Checkpoint) -> messages.Checkpoint:
    """Converts a checkpoint to its message."""
    return to_message(
        messages.Checkpoint,
        checkpoint,
        trial_id=checkpoint.owner.trial_id or None,
        experiment_id=checkpoint.owner.experiment_id or None,
        run=checkpoint.owner.run or None,
        steps_completed=None if checkpoint.commit_time is None else checkpoint.steps_completed,
        files=[from_file(file) for file in checkpoint.files],
        storage=_from_storage(checkpoint.storage),
        etag=etag_of(checkpoint.revision),
    )


def from_file(file: File) -> messages.File:
    """Converts a file to its message."""
    location = None if file.home is None else from_location(file.home)
    return to_message(messages.File, file, location=location)


def from_location(home: Home) -> messages.FileLocation:
    """Converts the location of a file's bytes to its message."""
    return to_message(messages.FileLocation, home)


def _to_file(file: messages.File) -> File:
    return File(file.path, file.size, file.digest)


def _from_storage(storage: Storage) -> storage_pb2.Storage:
    if isinstance(storage, DirectoryStorage):
        return storage_pb2.Storage(directory=storage_pb2.Storage.Directory(path=storage.path))
    return storage_pb2.Storage(
        bucket=storage_pb2.Storage.Bucket(
            bucket=storage.bucket,
            prefix=storage.prefix,
            endpoint_url=storage.endpoint_url,
            provider=_PROVIDER_MESSAGES[storage.provider],
        )
    )
