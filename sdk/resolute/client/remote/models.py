"""Models: checkpoints under names."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from resolute.api.checkpoints.v1 import model_pb2, models_service_pb2, models_service_pb2_grpc
from resolute.client.connection.paging import all_items
from resolute.client.connection.session import Session
from resolute.client.schema import convert
from resolute.client.schema.records import ModelRecord, ModelVersionRecord
from resolute.contracts.values import to_mapping, to_value

_pb = models_service_pb2


@dataclass(frozen=True, kw_only=True)
class ModelUpdate:
    """What is to be said of a model or a version from now on; None leaves it as it is."""

    name: str | None = None
    description: str | None = None
    notes: str | None = None
    labels: Sequence[str] | None = None
    metadata_patch: Mapping[str, Any] | None = None
    """Keys that replace those of the metadata; None removes."""


@dataclass(frozen=True, kw_only=True)
class ModelFilter:
    """Which models a list holds."""

    name: str = ""
    description: str = ""
    labels: Sequence[str] = field(default_factory=tuple)
    workspaces: Sequence[str] = field(default_factory=tuple)
    include_archived: bool = True


class Models:
    """Calls of the models service.

    Args:
        session: The connection.
    """

    def __init__(self, session: Session) -> None:
        self._stub = session.stub(models_service_pb2_grpc.ModelsServiceStub)

    def create(self, name: str, changes: ModelUpdate, *, workspace: str = "") -> ModelRecord:
        """Creates a model.

        Raises:
            AlreadyExistsError: The name is taken.
        """
        request = _pb.CreateModelRequest(
            model_id=str(uuid.uuid4()), name=name, workspace=workspace, description=_description(changes)
        )
        return _model(self._stub.CreateModel(request).model)

    def get(self, key: int | str) -> ModelRecord:
        """Gives a model by its name, its number or its UUID.

        Raises:
            NotFoundError: There is none.
        """
        return _model(self._stub.GetModel(_pb.GetModelRequest(model=_key(key))).model)

    def list(self, wanted: ModelFilter) -> Iterator[ModelRecord]:
        """Yields models by name."""
        request = _pb.ListModelsRequest(
            name=wanted.name,
            description=wanted.description,
            labels=wanted.labels,
            workspaces=wanted.workspaces,
            include_archived=wanted.include_archived,
        )
        for message in all_items(self._stub.ListModels, request, "models"):
            yield _model(message)

    def update(
        self,
        key: int | str,
        changes: ModelUpdate,
        *,
        workspace: str | None = None,
        archived: bool | None = None,
    ) -> ModelRecord:
        """Changes what is said of a model.

        Raises:
            NotFoundError: There is none.
        """
        request = _pb.UpdateModelRequest(model=_key(key), description=_description(changes))
        if workspace is not None:
            request.workspace = workspace
        if archived is not None:
            request.archived = archived
        return _model(self._stub.UpdateModel(request).model)

    def delete(self, key: int | str) -> None:
        """Removes a model with its versions; their checkpoints stay."""
        self._stub.DeleteModel(_pb.DeleteModelRequest(model=_key(key)))

    def register(self, key: int | str, checkpoint: str, changes: ModelUpdate) -> ModelVersionRecord:
        """Registers a checkpoint as the next version.

        Raises:
            NotFoundError: There is no such model, or no such checkpoint.
        """
        request = _pb.RegisterVersionRequest(
            model=_key(key),
            checkpoint_id=convert.checkpoint_id(checkpoint),
            request_id=str(uuid.uuid4()),
            description=_description(changes),
        )
        return _version(self._stub.RegisterVersion(request).version)

    def version(self, key: int | str, version: int = 0) -> ModelVersionRecord:
        """Gives a version, the latest for zero.

        Raises:
            NotFoundError: There is none.
        """
        return _version(
            self._stub.GetVersion(_pb.GetVersionRequest(model=_key(key), version=version)).version
        )

    def versions(self, key: int | str) -> Iterator[ModelVersionRecord]:
        """Yields the versions of a model, newest first. Their checkpoints come without files."""
        request = _pb.ListVersionsRequest(model=_key(key))
        for message in all_items(self._stub.ListVersions, request, "versions"):
            yield _version(message)

    def update_version(self, key: int | str, version: int, changes: ModelUpdate) -> ModelVersionRecord:
        """Changes what is said of a version.

        Raises:
            NotFoundError: There is none.
        """
        request = _pb.UpdateVersionRequest(
            model=_key(key), version=version, description=_description(changes)
        )
        return _version(self._stub.UpdateVersion(request).version)

    def delete_version(self, key: int | str, version: int) -> None:
        """Removes a version; its checkpoint stays."""
        self._stub.DeleteVersion(_pb.DeleteVersionRequest(model=_key(key), version=version))


def _key(key: int | str) -> models_service_pb2.ModelKey:
    if isinstance(key, int) or key.isdecimal():
        return _pb.ModelKey(number=int(key))
    try:
        return _pb.ModelKey(model_id=str(uuid.UUID(key)))
    except ValueError:
        return _pb.ModelKey(name=key)


def _description(changes: ModelUpdate) -> models_service_pb2.Description:
    labels = None if changes.labels is None else _pb.Description.Labels(values=changes.labels)
    patch = None if changes.metadata_patch is None else to_value(dict(changes.metadata_patch))
    return _pb.Description(
        name=changes.name,
        description=changes.description,
        notes=changes.notes,
        labels=labels,
        metadata_patch=patch,
    )


def _model(message: model_pb2.Model) -> ModelRecord:
    return ModelRecord(
        uuid=message.model_id,
        id=message.number,
        name=message.name,
        description=message.description,
        notes=message.notes,
        labels=tuple(message.labels),
        metadata=to_mapping(message.metadata),
        workspace=message.workspace,
        owner=message.owner,
        archived=message.archived,
        version_count=message.version_count,
        create_time=convert.datetime_field(message, "create_time"),
        update_time=convert.datetime_field(message, "update_time"),
    )


def _version(message: model_pb2.ModelVersion) -> ModelVersionRecord:
    return ModelVersionRecord(
        model=_model(message.model),
        version=message.version,
        checkpoint=convert.checkpoint(message.checkpoint),
        name=message.name,
        comment=message.comment,
        notes=message.notes,
        labels=tuple(message.labels),
        metadata=to_mapping(message.metadata),
        owner=message.owner,
        create_time=convert.datetime_field(message, "create_time"),
    )
