"""Workspaces by name and id, for clusters of tests that run no experiments service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc
from support.services.stand_ins.no_roles import NoRoles

from resolute.api.experiments.v1 import workspace_pb2
from resolute.api.experiments.v1 import workspaces_service_pb2 as messages
from resolute_serving.server.service import Blueprint, Environment

NAMES = ("Uncategorized", "vision", "text")
"""Names of the workspaces; ids count from 1."""


class WorkspacesList:
    """Lists workspaces, and does nothing else."""

    name = "workspaces"
    grpc_names: Sequence[str] = ()
    access_lookup = NoRoles()

    async def list(self, request: Any, context: Any) -> messages.ListWorkspacesResponse:
        return messages.ListWorkspacesResponse(
            workspaces=[
                workspace_pb2.Workspace(workspace_id=number, name=name)
                for number, name in enumerate(NAMES, start=1)
                if not request.names or name in request.names
            ]
        )

    def register(self, server: grpc.aio.Server) -> None:
        handler = grpc.unary_unary_rpc_method_handler(
            self.list,
            request_deserializer=messages.ListWorkspacesRequest.FromString,
            response_serializer=messages.ListWorkspacesResponse.SerializeToString,
        )
        service = "resolute.api.experiments.v1.WorkspacesService"
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, {"ListWorkspaces": handler}),)
        )

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


def _create(environment: Environment) -> WorkspacesList:
    return WorkspacesList()


BLUEPRINT = Blueprint(name="workspaces", package="", create=_create)
