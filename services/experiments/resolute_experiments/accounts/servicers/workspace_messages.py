"""Builds the messages of workspaces and projects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import project_pb2, workspace_pb2
from resolute.contracts.messages import to_message
from resolute.contracts.times import to_timestamp
from resolute_experiments.accounts.store import usage
from resolute_experiments.accounts.store.projects import Project
from resolute_experiments.accounts.store.usage import Usage
from resolute_experiments.accounts.store.workspaces import Quota, Workspace
from resolute_serving.updates import etag_of
from resolute_serving.validation import invalid

_BOUNDS: tuple[Literal["live_experiments", "slots", "storage_bytes"], ...] = (
    "live_experiments",
    "slots",
    "storage_bytes",
)


def quota_of(message: workspace_pb2.Quota) -> Quota:
    """Reads the bounds of a quota; an absent one is zero, which is none.

    Raises:
        InvalidArgumentError: A bound is not above zero.
    """
    for field in _BOUNDS:
        if message.HasField(field) and getattr(message, field) <= 0:
            raise invalid(f"quota.{field}", f"quota.{field} must be above 0; leave it out for no bound")
    return Quota(message.live_experiments, message.slots, message.storage_bytes)


def workspace_message(connection: Connection, workspace: Workspace) -> workspace_pb2.Workspace:
    """Shows a workspace, and what it uses except for storage."""
    return workspace_messages(connection, [workspace])[0]


def new_workspace_message(workspace: Workspace) -> workspace_pb2.Workspace:
    """Shows a workspace that was just created, in which there is nothing yet."""
    return _workspace(workspace, usage.NOTHING)


def workspace_messages(
    connection: Connection, shown: Sequence[Workspace]
) -> Sequence[workspace_pb2.Workspace]:
    """Shows workspaces as ``workspace_message`` does, in as many statements for one as for all."""
    used = usage.of_workspaces(connection, [workspace.name for workspace in shown])
    return [_workspace(workspace, used[workspace.name]) for workspace in shown]


def _workspace(workspace: Workspace, used: Usage) -> workspace_pb2.Workspace:
    return to_message(
        workspace_pb2.Workspace,
        workspace,
        workspace_id=workspace.number,
        owner_id=workspace.owner_number,
        owner_name=workspace.owner,
        quota=workspace_pb2.Quota(**{bound: getattr(workspace.quota, bound) or None for bound in _BOUNDS}),
        usage=workspace_pb2.WorkspaceUsage(
            live_experiments=used.live_experiments,
            slots=used.slots,
            projects=used.projects,
            experiments=used.experiments,
        ),
        create_time=to_timestamp(workspace.created_at),
        etag=etag_of(workspace.revision),
    )


def project_message(connection: Connection, project: Project) -> project_pb2.Project:
    """Shows a project."""
    return project_messages(connection, [project])[0]


def project_messages(connection: Connection, shown: Sequence[Project]) -> Sequence[project_pb2.Project]:
    """Shows projects, in as many statements for one as for all."""
    counts = usage.experiments_of_projects(connection, [project.number for project in shown])
    return [_project(project, experiment_count=counts[project.number]) for project in shown]


def _project(project: Project, *, experiment_count: int) -> project_pb2.Project:
    return to_message(
        project_pb2.Project,
        project,
        project_id=project.number,
        workspace_id=project.workspace_number,
        workspace_name=project.workspace,
        owner_id=project.owner_number,
        owner_name=project.owner,
        experiment_count=experiment_count,
        create_time=to_timestamp(project.created_at),
        etag=etag_of(project.revision),
    )
