"""Models: checkpoints under names."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from resolute.api.checkpoints.v1 import model_pb2, models_service_pb2, models_service_pb2_grpc
from resolute.api.common.v1 import value_pb2
from resolute.client.connection.paging import all_items
from resolute.client.connection.session import Session
from resolute.client.remote.accounts.workspaces import Workspaces
from resolute.client.schema import convert
from resolute.client.schema.records import ModelRecord, ModelVersionRecord
from resolute.contracts.messages import from_message
from resolute.contracts.values import to_value

_pb = models_service_pb2
_DEFAULT_WORKSPACE = "Uncategorized"


@dataclass(frozen=True, kw_only=True)
class ModelUpdate:
    """New values for a model or a version; None leaves a field as it is."""

    name: str | None = None
    description: str | None = None
    """One line; the comment of a version."""
    notes: str | None = None
    labels: Sequence[str] | None = None
    metadata_patch: Mapping[str, Any] | None = None
    """Keys that replace those of the metadata; None removes."""


@dataclass(frozen=True, kw_only=True)
class ModelFilter:
    """A filter of models."""

    name: str = ""
    """Part of the name, in any case."""
    description: str = ""
    """Part of the description, in any case."""
    labels: Sequence[str] = field(default_factory=tuple)
    workspaces: Sequence[str] = field(default_factory=tuple)
    """Names of workspaces."""
    workspace_ids: Sequence[int] = field(default_factory=tuple)
    include_archived: bool = True


class Models:
    """Calls of the models service.

    Args:
        session: The connection.
        workspaces: Calls that look up the ids of workspaces.
    """

    def __init__(self, session: Session, workspaces: Workspaces) -> None:
        self._stub = session.stub(models_service_pb2_grpc.ModelsServiceStub)
        self._workspaces = workspaces
        self._workspace_names: dict[int, str] = {}

    def create(self, name: str, values: ModelUpdate, *, workspace: str = "") -> ModelRecord:
        """Creates a model.

        Raises:
            AlreadyExistsError: The name is taken.
            NotFoundError: There is no such workspace.
        """
        request = _pb.CreateModelRequest(
            request_id=str(uuid.uuid4()),
            model=model_pb2.Model(
                name=name,
                description=values.description or "",
                notes=values.notes or "",
                labels=values.labels or (),
                metadata=to_value(dict(values.metadata_patch or {})),
                workspace_id=self._workspaces.id_of(workspace or _DEFAULT_WORKSPACE),
            ),
        )
        return self._model(self._stub.CreateModel(request).model)

    def get(self, key: int | str) -> ModelRecord:
        """Returns a model by its name, its number or its UUID.

        Raises:
            NotFoundError: There is none.
        """
        return self._model(self._stub.GetModel(_pb.GetModelRequest(key=_key(key))).model)

    def list(self, wanted: ModelFilter) -> Iterator[ModelRecord]:
        """Yields models by name."""
        named = [self._workspaces.id_of(name) for name in wanted.workspaces]
        request = _pb.ListModelsRequest(
            name_contains=wanted.name,
            description_contains=wanted.description,
            required_labels=wanted.labels,
            workspace_ids=[*named, *wanted.workspace_ids],
            archived=None if wanted.include_archived else False,
        )
        for message in all_items(self._stub.ListModels, request, "models"):
            yield self._model(message)

    def update(
        self,
        key: int | str,
        changes: ModelUpdate,
        *,
        workspace: str | None = None,
        archived: bool | None = None,
    ) -> ModelRecord:
        """Updates a model.

        Raises:
            NotFoundError: There is none, or no such workspace.
        """
        values: dict[str, Any] = {
            "name": changes.name,
            "description": changes.description,
            "notes": changes.notes,
            "labels": changes.labels,
            "workspace_id": None if workspace is None else self._workspaces.id_of(workspace),
            "archived": archived,
        }
        values = _present(values)
        request = _pb.UpdateModelRequest(
            key=_key(key),
            model=model_pb2.Model(**values),
            update_mask=FieldMask(paths=sorted(values)),
            metadata_patch=_patch(changes),
        )
        return self._model(self._stub.UpdateModel(request).model)

    def delete(self, key: int | str) -> None:
        """Deletes a model with its versions; their checkpoints stay."""
        self._stub.DeleteModel(_pb.DeleteModelRequest(key=_key(key)))

    def register(self, key: int | str, checkpoint: str, values: ModelUpdate) -> ModelVersionRecord:
        """Registers a checkpoint as the next version.

        Raises:
            NotFoundError: There is no such model, or no such checkpoint.
        """
        request = _pb.CreateVersionRequest(
            request_id=str(uuid.uuid4()),
            key=_key(key),
            checkpoint_id=convert.checkpoint_id(checkpoint),
            version=model_pb2.ModelVersion(
                name=values.name or "",
                comment=values.description or "",
                notes=values.notes or "",
                labels=values.labels or (),
                metadata=to_value(dict(values.metadata_patch or {})),
            ),
        )
        return _version(self._stub.CreateVersion(request).version)

    def version(self, key: int | str, number: int | None = None) -> ModelVersionRecord:
        """Returns a version, the latest for None.

        Raises:
            NotFoundError: There is none.
        """
        request = _pb.GetVersionRequest(key=_key(key), version_number=number)
        return _version(self._stub.GetVersion(request).version)

    def versions(self, key: int | str) -> Iterator[ModelVersionRecord]:
        """Yields the versions of a model, newest first. Their checkpoints come without files."""
        request = _pb.ListVersionsRequest(key=_key(key))
        for message in all_items(self._stub.ListVersions, request, "versions"):
            yield _version(message)

    def update_version(self, key: int | str, number: int, changes: ModelUpdate) -> ModelVersionRecord:
        """Updates a version.

        Raises:
            NotFoundError: There is none.
        """
        values = _present(
            {
                "name": changes.name,
                "comment": changes.description,
                "notes": changes.notes,
                "labels": changes.labels,
            }
        )
        request = _pb.UpdateVersionRequest(
            key=_key(key),
            version_number=number,
            version=model_pb2.ModelVersion(**values),
            update_mask=FieldMask(paths=sorted(values)),
            metadata_patch=_patch(changes),
        )
        return _version(self._stub.UpdateVersion(request).version)

    def delete_version(self, key: int | str, number: int) -> None:
        """Deletes a version; its checkpoint stays."""
        self._stub.DeleteVersion(_pb.DeleteVersionRequest(key=_key(key), version_number=number))

    def _model(self, message: model_pb2.Model) -> ModelRecord:
        return from_message(
            ModelRecord,
            message,
            uuid=message.model_id,
            id=message.number,
            workspace=self._workspace_name(message),
            owner=message.owner_name,
        )

    def _workspace_name(self, message: model_pb2.Model) -> str:
        if not message.HasField("workspace_id"):
            return ""
        if message.workspace_id not in self._workspace_names:
            self._workspace_names = {workspace.id: workspace.name for workspace in self._workspaces.list()}
        # A model outlives its workspace.
        return self._workspace_names.get(message.workspace_id, "")


def _present(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _patch(changes: ModelUpdate) -> value_pb2.Value | None:
    return None if changes.metadata_patch is None else to_value(dict(changes.metadata_patch))


def _key(key: int | str) -> models_service_pb2.ModelKey:
    if isinstance(key, int) or key.isdecimal():
        return _pb.ModelKey(number=int(key))
    try:
        return _pb.ModelKey(model_id=str(uuid.UUID(key)))
    except ValueError:
        return _pb.ModelKey(name=key)


def _version(message: model_pb2.ModelVersion) -> ModelVersionRecord:
    return from_message(
        ModelVersionRecord,
        message,
        model_uuid=message.model_id,
        model_id=message.model_number,
        version=message.number,
        checkpoint=convert.checkpoint(message.checkpoint),
        owner=message.owner_name,
    )
