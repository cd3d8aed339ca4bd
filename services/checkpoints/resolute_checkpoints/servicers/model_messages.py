"""Messages about models to and from values. What is wrong in a request is found here."""

from __future__ import annotations

from resolute.api.checkpoints.v1 import model_pb2 as messages
from resolute.api.checkpoints.v1 import models_service_pb2 as requests
from resolute.contracts.values import to_mapping, to_value
from resolute_checkpoints.domain.model import Description, Model, ModelKey, ModelVersion, check_name, invalid
from resolute_checkpoints.servicers import checkpoint_messages
from resolute_checkpoints.servicers.identifiers import parse_uuid


def to_key(message: requests.ModelKey) -> ModelKey:
    """Reads which model is meant.

    Raises:
        InvalidArgumentError: None is.
    """
    kind = message.WhichOneof("key")
    if kind == "model_id":
        return ModelKey(model_id=parse_uuid(message.model_id, field="model.model_id"))
    if kind == "number" and message.number > 0:
        return ModelKey(number=message.number)
    if kind == "name" and message.name:
        return ModelKey(name=message.name)
    raise invalid("model", "names no model; give its name, its number or its UUID")


def to_description(message: requests.Description) -> Description:
    """Reads what is to be said of a model or a version.

    Raises:
        InvalidArgumentError: Something is too long.
    """
    description = Description(
        name=message.name if message.HasField("name") else None,
        text=message.description if message.HasField("description") else None,
        notes=message.notes if message.HasField("notes") else None,
        labels=tuple(message.labels.values) if message.HasField("labels") else None,
        metadata_patch=to_mapping(message.metadata_patch) if message.HasField("metadata_patch") else None,
    )
    description.check()
    return description


def to_model_description(message: requests.Description) -> Description:
    """Reads what is to be said of a model, whose name must be one.

    Raises:
        InvalidArgumentError: Something is too long, or the name is none.
    """
    description = to_description(message)
    if description.name is not None:
        check_name(description.name)
    return description


def from_model(model: Model) -> messages.Model:
    """Writes a model."""
    return messages.Model(
        model_id=model.model_id,
        number=model.number,
        name=model.name,
        description=model.description,
        notes=model.notes,
        labels=model.labels,
        metadata=to_value(dict(model.metadata)),
        workspace=model.workspace,
        owner=model.owner,
        archived=model.archived,
        version_count=model.version_count,
        create_time=checkpoint_messages.to_timestamp(model.create_time),
        update_time=checkpoint_messages.to_timestamp(model.update_time),
    )


def from_version(version: ModelVersion) -> messages.ModelVersion:
    """Writes a version."""
    return messages.ModelVersion(
        model=from_model(version.model),
        version=version.version,
        checkpoint=checkpoint_messages.from_checkpoint(version.checkpoint),
        name=version.name,
        comment=version.comment,
        notes=version.notes,
        labels=version.labels,
        metadata=to_value(dict(version.metadata)),
        owner=version.owner,
        create_time=checkpoint_messages.to_timestamp(version.create_time),
    )
