"""Imports registered models with their versions, whose checkpoints are imported before."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from urllib.parse import quote

from resolute.api.checkpoints.v1 import checkpoint_pb2, model_pb2, models_service_pb2
from resolute.client.remote.imports import batches
from resolute.client.remote.models import ModelFilter
from resolute.client.schema.states import CheckpointState
from resolute.client.services import Services
from resolute.contracts.times import seconds_at, to_timestamp
from resolute.contracts.values import to_value
from resolute.errors import NotFoundError
from resolute.imports.identifiers import OldName
from resolute.imports.master import Master, Message
from resolute.imports.report import Report

_READABLE = {CheckpointState.COMPLETED, CheckpointState.PARTIALLY_DELETED}
_MOST_AT_ONCE = 250


def bring_models(
    master: Master, services: Services, report: Report, *, cluster_id: str, workspaces: Mapping[int, int]
) -> None:
    """Takes over the registered models whose versions are checkpoints that are here.

    Args:
        master: Where from.
        services: Where to.
        report: Called with each.
        cluster_id: UUID of the other cluster.
        workspaces: Numbers of workspaces here by their numbers there.
    """
    users = {user.name: user.id for user in services.access.list_users()}
    known = {model.uuid for model in services.models.list(ModelFilter())}
    for old in models_of(master):
        with report.noting(f"model {old.get('name')!r}"):
            model_id = OldName(cluster_id, "model", int(old["id"])).id
            workspace = workspaces.get(int(old.get("workspaceId") or 1))
            model = _model(old, model_id, workspace=workspace, users=users)
            versions = [_version(version, users) for version in _versions_of(master, old)]
            kept = [version for version in versions if _is_here(services, version.checkpoint.checkpoint_id)]
            report.remark("versions of models whose checkpoints are not here", len(versions) - len(kept))
            found = batches(kept, most=_MOST_AT_ONCE, size=model_pb2.ModelVersion.ByteSize)
            for batch in list(found) or [[]]:
                services.imports.model(models_service_pb2.ImportModelRequest(model=model, versions=batch))
            report.add("models", **({"known": 1} if model_id in known else {"new": 1}))


def models_of(master: Master) -> Iterator[Message]:
    """Yields the registered models, oldest first."""
    order = {"sortBy": "SORT_BY_CREATION_TIME", "orderBy": "ORDER_BY_ASC"}
    yield from master.pages("/api/v1/models", "models", **order)


def _versions_of(master: Master, model: Message) -> Iterator[Message]:
    path = f"/api/v1/models/{quote(str(model['name']), safe='')}/versions"
    order = {"sortBy": "SORT_BY_VERSION", "orderBy": "ORDER_BY_ASC"}
    return master.pages(path, "modelVersions", **order)


def _model(
    old: Message, model_id: str, *, workspace: int | None, users: Mapping[str, int]
) -> model_pb2.Model:
    owner = str(old.get("username") or "")
    return model_pb2.Model(
        model_id=model_id,
        name=str(old["name"]),
        description=str(old.get("description") or ""),
        notes=str(old.get("notes") or ""),
        labels=old.get("labels") or [],
        metadata=to_value(dict(old.get("metadata") or {})),
        workspace_id=workspace,
        owner_id=users.get(owner),
        owner_name=owner,
        archived=bool(old.get("archived")),
        create_time=to_timestamp(seconds_at(old.get("creationTime"))),
        update_time=to_timestamp(seconds_at(old.get("lastUpdatedTime"))),
    )


def _version(old: Message, users: Mapping[str, int]) -> model_pb2.ModelVersion:
    owner = str(old.get("username") or "")
    return model_pb2.ModelVersion(
        number=int(old["version"]),
        checkpoint=checkpoint_pb2.Checkpoint(checkpoint_id=str(uuid.UUID(str(old["checkpoint"]["uuid"])))),
        name=str(old.get("name") or ""),
        comment=str(old.get("comment") or ""),
        notes=str(old.get("notes") or ""),
        labels=old.get("labels") or [],
        metadata=to_value(dict(old.get("metadata") or {})),
        owner_id=users.get(owner),
        owner_name=owner,
        create_time=to_timestamp(seconds_at(old.get("creationTime"))),
    )


def _is_here(services: Services, checkpoint_id: str) -> bool:
    try:
        return services.checkpoints.get(checkpoint_id).state in _READABLE
    except NotFoundError:
        return False
