"""Converts messages about models to and from values, and checks requests."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from resolute.api.checkpoints.v1 import model_pb2 as messages
from resolute.api.checkpoints.v1 import models_service_pb2 as requests
from resolute.contracts.messages import to_message
from resolute.contracts.values import to_mapping
from resolute_checkpoints.domain.model import (
    MAX_NAME_CHARACTERS,
    Changes,
    Model,
    ModelFilter,
    ModelKey,
    ModelVersion,
    NewModel,
    NewVersion,
    check_labels,
    check_name,
    check_text,
)
from resolute_checkpoints.servicers import checkpoint_messages
from resolute_checkpoints.servicers.identifiers import parse_uuid
from resolute_serving.auth.grants import current_grants
from resolute_serving.updates import etag_of, update_paths
from resolute_serving.validation import invalid_field

_MODEL_PATHS = ("archived", "description", "labels", "name", "notes", "workspace_id")
_VERSION_PATHS = ("comment", "labels", "name", "notes")
MAX_FILTER_ENTRIES = 100
"""Most entries of one filter of a list."""


def to_key(message: requests.ModelKey) -> ModelKey:
    """Converts the key of a model.

    Raises:
        InvalidArgumentError: None is.
    """
    kind = message.WhichOneof("key")
    if kind == "model_id":
        return ModelKey(model_id=parse_uuid(message.model_id, field="key.model_id"))
    if kind == "number" and message.number > 0:
        return ModelKey(number=message.number)
    if kind == "name" and message.name:
        return ModelKey(name=message.name)
    raise invalid_field("key", "names no model; set its UUID, its number or its name")


def to_new_model(message: messages.Model) -> NewModel:
    """Converts the model of a create request.

    Raises:
        InvalidArgumentError: The name is not one, or something is too long.
    """
    return NewModel(
        name=check_name(message.name),
        description=check_text(message.description, field="model.description"),
        notes=check_text(message.notes, field="model.notes"),
        labels=check_labels(message.labels, field="model.labels"),
        metadata=to_mapping(message.metadata),
        workspace_id=_workspace_id(message),
    )


def to_new_version(request: requests.CreateVersionRequest) -> NewVersion:
    """Converts the version of a create request.

    Raises:
        InvalidArgumentError: Something is too long, or the checkpoint is not named by a UUID.
    """
    message = request.version
    return NewVersion(
        checkpoint_id=parse_uuid(request.checkpoint_id, field="checkpoint_id"),
        name=check_text(message.name, field="version.name", most=MAX_NAME_CHARACTERS),
        comment=check_text(message.comment, field="version.comment"),
        notes=check_text(message.notes, field="version.notes"),
        labels=check_labels(message.labels, field="version.labels"),
        metadata=to_mapping(message.metadata),
    )


def to_model_changes(request: requests.UpdateModelRequest) -> Changes:
    """Converts an update of a model.

    Raises:
        InvalidArgumentError: The mask or a value is wrong.
    """
    return _to_changes(request, request.model, prefix="model", allowed=_MODEL_PATHS)


def to_version_changes(request: requests.UpdateVersionRequest) -> Changes:
    """Converts an update of a version.

    Raises:
        InvalidArgumentError: The mask or a value is wrong.
    """
    return _to_changes(request, request.version, prefix="version", allowed=_VERSION_PATHS)


def to_filter(request: requests.ListModelsRequest) -> ModelFilter:
    """Converts the filter of a list of models.

    Raises:
        InvalidArgumentError: A filter has too many entries.
    """
    for field in ("names", "required_labels", "workspace_ids", "owner_ids"):
        checkpoint_messages.require_count(getattr(request, field), field=field, limit=MAX_FILTER_ENTRIES)
    return ModelFilter(
        names=tuple(request.names),
        name_contains=request.name_contains,
        description_contains=request.description_contains,
        required_labels=tuple(request.required_labels),
        workspace_ids=tuple(request.workspace_ids),
        owner_ids=tuple(request.owner_ids),
        archived=request.archived if request.HasField("archived") else None,
        visible=current_grants.get().visible,
    )


def from_model(model: Model) -> messages.Model:
    """Converts a model to its message."""
    return to_message(
        messages.Model,
        model,
        owner_id=model.author.user_id,
        owner_name=model.author.name,
        etag=etag_of(model.revision),
    )


def from_version(version: ModelVersion) -> messages.ModelVersion:
    """Converts a version to its message."""
    return to_message(
        messages.ModelVersion,
        version,
        model_id=version.model.model_id,
        model_number=version.model.number,
        model_name=version.model.name,
        checkpoint=checkpoint_messages.from_checkpoint(version.checkpoint),
        owner_id=version.author.user_id,
        owner_name=version.author.name,
        etag=etag_of(version.revision),
    )


def _to_changes(request: Any, message: Any, *, prefix: str, allowed: Collection[str]) -> Changes:
    patch = to_mapping(request.metadata_patch) if request.HasField("metadata_patch") else None
    only_metadata = patch is not None and not request.update_mask.paths
    paths = frozenset[str]() if only_metadata else update_paths(request.update_mask, allowed=allowed)
    return Changes(
        values={path: _new_value(message, path, prefix=prefix) for path in sorted(paths)},
        metadata_patch=patch,
        etag=request.etag,
    )


def _new_value(message: Any, path: str, *, prefix: str) -> Any:
    value, field = getattr(message, path), f"{prefix}.{path}"
    if path == "workspace_id":
        return _workspace_id(message)
    if path == "archived":
        return value
    if path == "labels":
        return check_labels(value, field=field)
    if path == "name" and prefix == "model":
        return check_name(value)
    return check_text(value, field=field, **({"most": MAX_NAME_CHARACTERS} if path == "name" else {}))


def _workspace_id(message: messages.Model) -> int | None:
    if not message.HasField("workspace_id"):
        return None
    if message.workspace_id < 1:
        raise invalid_field("model.workspace_id", f"is {message.workspace_id}; ids count from 1")
    return message.workspace_id
