"""Converts messages about imported checkpoints and models to values, and checks requests."""

from __future__ import annotations

from resolute.api.checkpoints.v1 import checkpoint_pb2, model_pb2
from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as checkpoints
from resolute.api.checkpoints.v1 import models_service_pb2 as models
from resolute.contracts.times import seconds_of
from resolute.contracts.values import to_mapping
from resolute_checkpoints.domain.checkpoint import READABLE, Checkpoint, Owner, State
from resolute_checkpoints.domain.manifest import Manifest
from resolute_checkpoints.domain.model import Author
from resolute_checkpoints.registry.imports import ImportedCheckpoint, ImportedModel, ImportedVersion
from resolute_checkpoints.servicers import checkpoint_messages, model_messages
from resolute_checkpoints.servicers.identifiers import parse_uuid
from resolute_serving.validation import check_unique, invalid_field

_MOST = 500
_STATES = READABLE | {State.DELETED}


def to_imported_checkpoints(request: checkpoints.ImportCheckpointsRequest) -> list[ImportedCheckpoint]:
    """Reads checkpoints of another cluster.

    Raises:
        InvalidArgumentError: A field is wrong.
    """
    checkpoint_messages.require_count(request.checkpoints, field="checkpoints", limit=_MOST)
    wanted = [_to_checkpoint(checkpoint, request) for checkpoint in request.checkpoints]
    check_unique((item.checkpoint.checkpoint_id for item in wanted), field="checkpoints.checkpoint_id")
    return wanted


def to_imported_model(request: models.ImportModelRequest) -> ImportedModel:
    """Reads a model of another cluster.

    Raises:
        InvalidArgumentError: A field is wrong.
    """
    checkpoint_messages.require_count(request.versions, field="versions", limit=_MOST)
    check_unique((version.number for version in request.versions), field="versions.number")
    model = request.model
    return ImportedModel(
        model_id=parse_uuid(model.model_id, field="model.model_id"),
        new=model_messages.to_new_model(model),
        author=_author(model),
        archived=model.archived,
        create_time=seconds_of(model.create_time),
        update_time=seconds_of(model.update_time),
        versions=tuple(map(_to_version, request.versions)),
    )


def _to_checkpoint(
    one: checkpoint_pb2.Checkpoint, request: checkpoints.ImportCheckpointsRequest
) -> ImportedCheckpoint:
    (state,) = checkpoint_messages.to_states([one.state])
    if state not in _STATES:
        raise invalid_field("checkpoints.state", f"is {state.value}; it must be committed or deleted")
    files = checkpoint_messages.to_files(one.files, limit=len(one.files))
    if state is State.DELETED and files:
        raise invalid_field("checkpoints.files", "are listed of a checkpoint that is deleted; leave them out")
    return ImportedCheckpoint(
        checkpoint=Checkpoint(
            checkpoint_id=parse_uuid(one.checkpoint_id, field="checkpoints.checkpoint_id"),
            state=state,
            owner=Owner(
                trial_id=parse_uuid(one.trial_id, field="checkpoints.trial_id"),
                experiment_id=parse_uuid(one.experiment_id, field="checkpoints.experiment_id"),
                run=one.run or 1,
                workspace=request.workspace_name,
                workspace_id=request.workspace_id or None,
            ),
            storage=checkpoint_messages.to_storage(one.storage),
            create_time=seconds_of(one.create_time),
            commit_time=seconds_of(one.commit_time),
            inherited=not request.copied,
        ),
        manifest=Manifest.checked(files, to_mapping(one.metadata)),
    )


def _to_version(one: model_pb2.ModelVersion) -> ImportedVersion:
    if one.number < 1:
        raise invalid_field("versions.number", f"is {one.number}; versions count from 1")
    checkpoint_id = one.checkpoint.checkpoint_id
    return ImportedVersion(
        number=one.number,
        new=model_messages.to_new_version(
            models.CreateVersionRequest(checkpoint_id=checkpoint_id, version=one)
        ),
        author=_author(one),
        create_time=seconds_of(one.create_time),
    )


def _author(message: model_pb2.Model | model_pb2.ModelVersion) -> Author:
    return Author(message.owner_name, message.owner_id if message.HasField("owner_id") else None)
