"""Models as scripts use them: names under which checkpoints are kept as versions."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from resolute.client.objects.base import ArchivableObject, RemoteObject
from resolute.client.objects.checkpoint import Checkpoint
from resolute.client.remote.models import ModelUpdate
from resolute.client.schema.ordering import OrderBy
from resolute.client.schema.records import ModelRecord, ModelVersionRecord, TrialMetrics
from resolute.errors import NotFoundError

AnnotatedT = TypeVar("AnnotatedT", ModelRecord, ModelVersionRecord)


class _Annotated(RemoteObject[AnnotatedT]):
    """The properties of models and of versions that users can edit."""

    @property
    def name(self) -> str:
        """Its name; a version need not have one."""
        return self._record.name

    @property
    def notes(self) -> str:
        """Longer text, Markdown."""
        return self._record.notes

    @property
    def labels(self) -> list[str]:
        """Words to find it by."""
        return list(self._record.labels)

    @property
    def metadata(self) -> dict[str, Any]:
        """Free metadata."""
        return dict(self._record.metadata)

    @property
    def username(self) -> str:
        """Who created it."""
        return self._record.owner

    @property
    def creation_time(self) -> datetime | None:
        """When it was created."""
        return self._record.create_time


class Model(_Annotated[ModelRecord], ArchivableObject[ModelRecord]):
    """A name under which checkpoints are kept as versions. A checkpoint that is a version is never deleted.

    An archived model is hidden in lists and accepts no versions.

    Examples:
        >>> from resolute import client
        >>> model = client.create_model("cats")
        >>> version = model.register_version(client.get_trial(1).top_checkpoint().uuid)
        >>> [one.model_version for one in model.list_versions()]
        [1]
    """

    def __repr__(self) -> str:
        return f"Model(name={self.name!r}, versions={self._record.version_count})"

    @property
    def model_id(self) -> int:
        """Its number."""
        return self._record.id

    @property
    def description(self) -> str:
        """One line about it."""
        return self._record.description

    @property
    def workspace(self) -> str:
        """Name of the workspace that it belongs to."""
        return self._record.workspace

    @property
    def workspace_id(self) -> int | None:
        """Number of that workspace; None for a model of no workspace."""
        return self._record.workspace_id

    @property
    def last_updated_time(self) -> datetime | None:
        """When it or a version of it was changed last."""
        return self._record.update_time

    def get_version(self, version: int = -1) -> ModelVersion | None:
        """Returns a version; the latest for -1. None if there is none."""
        try:
            record = self._services.models.version(self._record.uuid, version if version > 0 else None)
        except NotFoundError:
            return None
        return ModelVersion(self._services, record)

    def list_versions(self, order_by: OrderBy = OrderBy.DESC) -> list[ModelVersion]:
        """Lists its versions, by default the newest first."""
        versions = [
            ModelVersion(self._services, version)
            for version in self._services.models.versions(self._record.uuid)
        ]
        return versions if order_by is OrderBy.DESC else versions[::-1]

    get_versions = list_versions

    def register_version(
        self,
        checkpoint_uuid: str,
        name: str = "",
        comment: str = "",
        notes: str = "",
        labels: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> ModelVersion:
        """Registers a committed checkpoint as the next version.

        Args:
            checkpoint_uuid: UUID of the checkpoint.
            name: Name of the version, beside its number.
            comment: One line that lists show.
            notes: Longer text, in Markdown.
            labels: Words by which versions are listed.
            metadata: Values by keys of the caller's own, which JSON can hold.

        Raises:
            FailedPreconditionError: The model is archived.
            NotFoundError: There is no such checkpoint.
        """
        changes = ModelUpdate(
            name=name, description=comment, notes=notes, labels=labels, metadata_patch=metadata or {}
        )
        registered = self._services.models.register(self._record.uuid, checkpoint_uuid, changes)
        return ModelVersion(self._services, registered)

    def add_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Sets keys of the metadata."""
        self._change(ModelUpdate(metadata_patch=metadata))

    def remove_metadata(self, keys: Sequence[str]) -> None:
        """Removes keys of the metadata."""
        self._change(ModelUpdate(metadata_patch=dict.fromkeys(keys)))

    def set_labels(self, labels: Sequence[str]) -> None:
        """Puts labels in the place of those that were there.

        Raises:
            ValueError: They are no list of texts.
        """
        if isinstance(labels, str) or not all(isinstance(label, str) for label in labels):
            raise ValueError(f"labels are {labels!r}; a list of texts was expected")
        self._change(ModelUpdate(labels=labels))

    def set_description(self, description: str) -> None:
        """Sets its line."""
        self._change(ModelUpdate(description=description))

    def move_to_workspace(self, workspace_name: str) -> None:
        """Makes it belong to another workspace."""
        self._record = self._services.models.update(
            self._record.uuid, ModelUpdate(), workspace=workspace_name
        )

    def delete(self) -> None:
        """Removes it with its versions; their checkpoints stay, and may be deleted from then on."""
        self._services.models.delete(self._record.uuid)

    def _read(self) -> ModelRecord:
        return self._services.models.get(self._record.uuid)

    def _set_archived(self, archived: bool) -> ModelRecord:
        return self._services.models.update(self._record.uuid, ModelUpdate(), archived=archived)

    def _change(self, changes: ModelUpdate) -> None:
        self._record = self._services.models.update(self._record.uuid, changes)


class ModelVersion(_Annotated[ModelVersionRecord]):
    """A checkpoint as a version of a model.

    Examples:
        >>> from resolute import client
        >>> checkpoint = client.get_trial(1).top_checkpoint()
        >>> version = client.create_model("dogs").register_version(checkpoint.uuid)
        >>> version.model_version, version.checkpoint.resources
        (1, {'weights': 7})
    """

    def __repr__(self) -> str:
        return f"ModelVersion(model={self._record.model_name!r}, version={self.model_version})"

    @property
    def model_version(self) -> int:
        """Its number, from 1."""
        return self._record.version

    @property
    def model_id(self) -> int:
        """Number of the model."""
        return self._record.model_id

    @property
    def model_name(self) -> str:
        """Name of the model."""
        return self._record.model_name

    @functools.cached_property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint, with its files."""
        return Checkpoint(self._services, self._services.checkpoints.get(self._record.checkpoint.uuid))

    @property
    def comment(self) -> str:
        """One line about it."""
        return self._record.comment

    def set_name(self, name: str) -> None:
        """Sets its name."""
        self._change(ModelUpdate(name=name))

    def set_notes(self, notes: str) -> None:
        """Sets its notes."""
        self._change(ModelUpdate(notes=notes))

    def delete(self) -> None:
        """Removes it; its checkpoint stays, and may be deleted from then on."""
        self._services.models.delete_version(self._record.model_uuid, self.model_version)

    def get_metrics(self, group: str | None = None) -> list[TrialMetrics]:
        """Returns what the checkpoint's trial reported at its steps, in ``group`` or in all groups."""
        return self.checkpoint.get_metrics(group)

    def iter_metrics(self, group: str | None = None) -> Iterator[TrialMetrics]:
        """Yields what ``get_metrics`` gives."""
        yield from self.get_metrics(group)

    def _read(self) -> ModelVersionRecord:
        return self._services.models.version(self._record.model_uuid, self.model_version)

    def _change(self, changes: ModelUpdate) -> None:
        self._record = self._services.models.update_version(
            self._record.model_uuid, self.model_version, changes
        )
