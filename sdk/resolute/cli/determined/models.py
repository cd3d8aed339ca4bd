"""The model registry as `det model` prints it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from resolute.cli.determined import checkpoints
from resolute.cli.determined.spelling import indented, moment, services
from resolute.cli.display.rendering import Heading, Rendering, Table
from resolute.client.objects.checkpoint_ranking import ValidatedCheckpoint, with_validations
from resolute.client.schema.records import ModelRecord, ModelVersionRecord


def _document(model: ModelRecord) -> dict[str, Any]:
    """A model as the client writes it."""
    return {
        "archived": model.archived,
        "creation_time": model.create_time,
        "description": model.description,
        "id": model.id,
        "last_updated_time": model.update_time,
        "metadata": model.metadata,
        "name": model.name,
    }


def _sent(model: ModelRecord) -> dict[str, Any]:
    """A model as the master sends it."""
    return {
        "archived": model.archived,
        "creationTime": moment(model.create_time),
        "description": model.description,
        "id": model.id,
        "labels": list(model.labels),
        "lastUpdatedTime": moment(model.update_time),
        "metadata": model.metadata,
        "name": model.name,
        "notes": model.notes,
        "numVersions": model.version_count,
        "userId": model.owner_id,
        "username": model.owner,
        "workspaceId": model.workspace_id,
    }


def _version(version: ModelVersionRecord, model: ModelRecord) -> dict[str, Any]:
    (checkpoint,) = checkpoints.documents([_validated(version)])
    return {
        "checkpoint": checkpoint,
        "comment": version.comment,
        "creationTime": moment(version.create_time),
        "id": version.version,
        "labels": list(version.labels),
        "lastUpdatedTime": moment(version.create_time),
        "metadata": version.metadata,
        "model": _sent(model),
        "name": version.name,
        "notes": version.notes,
        "userId": None,
        "username": version.owner,
        "version": version.version,
    }


def _validated(version: ModelVersionRecord) -> ValidatedCheckpoint:
    asked = services()
    record = asked.checkpoints.get(version.checkpoint.uuid)
    trials = [asked.trials.get(record.trial_uuid)] if record.trial_uuid else []
    return with_validations([record], trials, metrics=asked.metrics)[0]


def _model() -> ModelRecord:
    """The model that the command line names."""
    return services().models.get(click.get_current_context().params["model"])


def _versions(versions: Sequence[ModelVersionRecord]) -> dict[str, Any]:
    model, count = _model(), len(versions)
    pagination = {"endIndex": count, "limit": 0, "offset": 0, "startIndex": 0, "total": count}
    return {
        "model": _sent(model),
        "modelVersions": [_version(version, model) for version in versions],
        "pagination": pagination,
    }


_LIST = (
    Heading("ID", lambda model: model.id),
    Heading("Name", lambda model: model.name),
    Heading("Workspace ID", lambda model: model.workspace_id),
    Heading("Creation Time", lambda model: model.create_time),
    Heading("Last Updated Time", lambda model: model.update_time),
    Heading("Metadata", lambda model: indented(model.metadata, spaces=2)),
)
_DESCRIBED = (*_LIST[:2], Heading("Description", lambda model: model.description), *_LIST[2:])
_VERSIONS = (
    Heading("Version #", lambda row: row[0].version),
    Heading("Trial ID", lambda row: row[1].trial.id if row[1].trial else None),
    Heading("Batch #", lambda row: row[1].checkpoint.steps_completed),
    Heading("Checkpoint UUID", lambda row: row[1].checkpoint.uuid),
    Heading("Validation Metrics", lambda row: indented(dict(row[1].metrics), spaces=2)),
    Heading("Metadata", lambda row: indented(row[1].checkpoint.metadata, spaces=2)),
)

RENDERINGS = {
    "model create": Rendering(_document),
    "model list": Rendering(lambda found: [_document(model) for model in found], (Table(_LIST),)),
    "model describe": Rendering(lambda found: _document(found["model"])),
    "model list-versions": Rendering(
        _versions,
        (
            Table(_DESCRIBED, lambda _: [_model()]),
            Table(_VERSIONS, lambda found: [(version, _validated(version)) for version in found], "\n"),
        ),
    ),
    "model register-version": Rendering(lambda found: {"modelVersion": _version(found, _model())}),
}
"""By the words of the command."""
