"""Messages of the contract to and from the registry's values. What is wrong in a request is found here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from google.protobuf.timestamp_pb2 import Timestamp

from resolute.api.checkpoints.v1 import checkpoint_pb2 as messages
from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as requests
from resolute.contracts.values import to_mapping, to_value
from resolute.errors import InvalidArgumentError, Violation
from resolute_checkpoints.blobs.base import FinishedUpload
from resolute_checkpoints.domain.checkpoint import (
    BucketStorage,
    Checkpoint,
    DirectoryStorage,
    File,
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

MAX_IDS = 1000
"""Most checkpoints or files that one request may name."""
MAX_REUSED = 10_000
"""Most files that one request may ask to reuse: the store is looked at once for all of them."""

_STATES: Mapping[State, messages.CheckpointState.ValueType] = {
    State.UPLOADING: messages.CHECKPOINT_STATE_UPLOADING,
    State.COMPLETED: messages.CHECKPOINT_STATE_COMPLETED,
    State.PARTIALLY_DELETED: messages.CHECKPOINT_STATE_PARTIALLY_DELETED,
    State.DELETING: messages.CHECKPOINT_STATE_DELETING,
    State.DELETED: messages.CHECKPOINT_STATE_DELETED,
    State.ABORTED: messages.CHECKPOINT_STATE_ABORTED,
}
_BY_MESSAGE = {message: state for state, message in _STATES.items()}
_PROVIDERS: Mapping[messages.Storage.Provider.ValueType, Provider] = {
    messages.Storage.PROVIDER_UNSPECIFIED: Provider.S3,
    messages.Storage.PROVIDER_GCS: Provider.GCS,
    messages.Storage.PROVIDER_AZURE: Provider.AZURE,
}
_PROVIDER_MESSAGES = {provider: message for message, provider in _PROVIDERS.items()}


def to_begin(request: requests.BeginCheckpointRequest, *, workspace: str) -> Begin:
    """Reads a BeginCheckpointRequest.

    Args:
        request: The request.
        workspace: The caller's.

    Raises:
        InvalidArgumentError: A field is wrong.
    """
    trial_id = parse_optional_uuid(request.trial_id, field="trial_id")
    experiment_id = parse_optional_uuid(request.experiment_id, field="experiment_id")
    if trial_id and not experiment_id:
        raise _invalid("experiment_id", "is empty; a checkpoint of a trial belongs to an experiment")
    if request.run < (1 if trial_id else 0):
        raise _invalid("run", f"is {request.run}; runs of a trial count from 1")
    return Begin(
        checkpoint_id=parse_uuid(request.checkpoint_id, field="checkpoint_id"),
        owner=Owner(trial_id=trial_id, experiment_id=experiment_id, run=request.run, workspace=workspace),
        storage=to_storage(request.storage),
    )


def to_commit(request: requests.CommitCheckpointRequest) -> Commit:
    """Reads a CommitCheckpointRequest.

    Raises:
        InvalidArgumentError: A field is wrong.
    """
    return Commit(
        checkpoint_id=parse_uuid(request.checkpoint_id, field="checkpoint_id"),
        run=request.run,
        manifest=Manifest.checked([_to_file(file) for file in request.files], to_mapping(request.metadata)),
        uploads=tuple(
            FinishedUpload(
                path=check_path(part.path, field=f"multiparts[{index}].path"),
                upload_id=part.upload_id,
                etags=tuple(part.etags),
            )
            for index, part in enumerate(request.multiparts)
        ),
    )


def to_retention_request(request: requests.ApplyRetentionRequest) -> RetentionRequest:
    """Reads an ApplyRetentionRequest.

    Raises:
        InvalidArgumentError: A field is wrong.
    """
    return RetentionRequest(
        experiment_id=parse_uuid(request.experiment_id, field="experiment_id"),
        policy=RetentionPolicy(
            request.save_experiment_best, request.save_trial_best, request.save_trial_latest
        ),
        smaller_is_better=request.smaller_is_better,
        validations={
            (validation.trial_id, validation.steps): Validation(validation.value, validation.time)
            for validation in request.validations
        },
        pinned=frozenset(request.pinned_checkpoint_ids),
    )


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


def require_count(items: Sequence[object], *, field: str, limit: int = MAX_IDS) -> None:
    """Makes sure that a request names no more things than one request may.

    Raises:
        InvalidArgumentError: It names more.
    """
    if len(items) > limit:
        raise _invalid(field, f"has {len(items)} entries; send at most {limit} at once")


def to_storage(message: messages.Storage) -> Storage:
    """Reads where checkpoints lie.

    Raises:
        InvalidArgumentError: It names no place.
    """
    kind = message.WhichOneof("kind")
    if kind == "directory" and message.directory.path:
        return DirectoryStorage(message.directory.path)
    if kind == "bucket" and message.bucket.bucket:
        return _to_bucket(message.bucket)
    raise _invalid("storage", "names no place; give a directory or a bucket")


def _to_bucket(message: messages.Storage.Bucket) -> BucketStorage:
    provider = _PROVIDERS.get(message.provider)
    if provider is None:
        raise _invalid("storage.bucket.provider", f"is {message.provider}, which this service does not know")
    return BucketStorage(message.bucket, message.prefix, message.endpoint_url, provider=provider)


def to_states(states: Sequence[messages.CheckpointState.ValueType]) -> frozenset[State]:
    """Reads the states of a list's filter; an empty filter stays empty.

    Raises:
        InvalidArgumentError: One is not known here.
    """
    unknown = [state for state in states if state not in _BY_MESSAGE]
    if unknown:
        raise _invalid("states", f"holds {unknown[0]}, which is no state that a checkpoint can have")
    return frozenset(_BY_MESSAGE[state] for state in states)


def from_checkpoint(checkpoint: Checkpoint) -> messages.Checkpoint:
    """Writes a checkpoint."""
    return messages.Checkpoint(
        checkpoint_id=checkpoint.checkpoint_id,
        state=_STATES[checkpoint.state],
        trial_id=checkpoint.owner.trial_id,
        experiment_id=checkpoint.owner.experiment_id,
        run=checkpoint.owner.run,
        steps_completed=checkpoint.steps_completed,
        files=[from_file(file) for file in checkpoint.files],
        metadata=to_value(dict(checkpoint.metadata)),
        create_time=to_timestamp(checkpoint.create_time),
        commit_time=None if checkpoint.commit_time is None else to_timestamp(checkpoint.commit_time),
        total_size=checkpoint.total_size,
        storage=_from_storage(checkpoint.storage),
        file_count=checkpoint.file_count,
        pinned=checkpoint.pinned,
    )


def from_file(file: File) -> messages.File:
    """Writes one file."""
    home = f"{file.home.checkpoint_id}/{file.home.path}" if file.home else ""
    return messages.File(path=file.path, size=file.size, digest=file.digest, home=home)


def _to_file(file: messages.File) -> File:
    return File(file.path, file.size, file.digest)


def _from_storage(storage: Storage) -> messages.Storage:
    if isinstance(storage, DirectoryStorage):
        return messages.Storage(directory=messages.Storage.Directory(path=storage.path))
    return messages.Storage(
        bucket=messages.Storage.Bucket(
            bucket=storage.bucket,
            prefix=storage.prefix,
            endpoint_url=storage.endpoint_url,
            provider=_PROVIDER_MESSAGES[storage.provider],
        )
    )


def to_timestamp(seconds: float) -> Timestamp:
    """Writes seconds since 1970."""
    return Timestamp(seconds=int(seconds // 1), nanos=int(seconds % 1 * 1e9))


def _invalid(field: str, problem: str) -> InvalidArgumentError:
    message = f"{field} {problem}"
    return InvalidArgumentError(message, violations=[Violation(field, message)])
