"""Calls about users, tokens and workspaces, for tests of the experiments service alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from support.services.in_process import Running

from resolute.api.experiments.v1 import (
    access_service_pb2,
    access_service_pb2_grpc,
    boards_service_pb2_grpc,
    cluster_service_pb2_grpc,
    project_pb2,
    user_pb2,
    workspace_pb2,
    workspaces_service_pb2,
    workspaces_service_pb2_grpc,
)

_access, _places = access_service_pb2, workspaces_service_pb2
EDITOR = user_pb2.USER_ROLE_EDITOR


@dataclass(frozen=True)
class Calls:
    """Stubs with one token."""

    access: Any
    places: Any
    cluster: Any
    boards: Any

    async def user(self, name: str, **changes: Any) -> user_pb2.User:
        """Creates a user."""
        request = _access.CreateUserRequest(name=name, **{"role": EDITOR, **changes})
        user: user_pb2.User = (await self.access.CreateUser(request)).user
        return user

    async def workspace(self, name: str, **changes: Any) -> workspace_pb2.Workspace:
        """Creates a workspace."""
        request = _places.CreateWorkspaceRequest(name=name, **changes)
        workspace: workspace_pb2.Workspace = (await self.places.CreateWorkspace(request)).workspace
        return workspace

    async def project(self, workspace_id: int, name: str, **changes: Any) -> project_pb2.Project:
        """Creates a project."""
        request = _places.CreateProjectRequest(workspace_id=workspace_id, name=name, **changes)
        project: project_pb2.Project = (await self.places.CreateProject(request)).project
        return project


@asynccontextmanager
async def calls(running: Running, token: str) -> AsyncIterator[Calls]:
    async with running.channel(token) as channel:
        yield Calls(
            access_service_pb2_grpc.AccessServiceStub(channel),
            workspaces_service_pb2_grpc.WorkspacesServiceStub(channel),
            cluster_service_pb2_grpc.ClusterServiceStub(channel),
            boards_service_pb2_grpc.BoardsServiceStub(channel),
        )


Scenario = Callable[[Running, Calls], Coroutine[Any, Any, None]]
