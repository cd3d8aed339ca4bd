"""Handlers of RolesService."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import roles_service_pb2 as pb2
from resolute.api.experiments.v1 import roles_service_pb2_grpc
from resolute_experiments.accounts.servicers.user_messages import role_of, workspace_role_message
from resolute_experiments.accounts.store import locations, users, workspace_roles, workspaces
from resolute_experiments.accounts.store.workspace_roles import WorkspaceRole
from resolute_experiments.context import ServiceContext
from resolute_experiments.store import audit
from resolute_experiments.store import schema as tables
from resolute_serving.auth.policy.resources import Kind, named
from resolute_serving.context import Role
from resolute_serving.filters import any_of, seen_in
from resolute_serving.validation import invalid, required_id

_MAX_OBJECTS = 1000


class RolesServicer(roles_service_pb2_grpc.RolesServiceServicer):
    """The handlers of roles in single workspaces.

    Args:
        core: The context that all handlers share.
    """

    def __init__(self, core: ServiceContext) -> None:
        self._core = core

    async def AssignRole(self, request: pb2.AssignRoleRequest, context: Any) -> pb2.AssignRoleResponse:
        """Gives a user a role in a workspace."""
        user_id = required_id(request.user_id, field="user_id")
        workspace_id = required_id(request.workspace_id, field="workspace_id")
        role = role_of(request.role, field="role")
        if role is Role.MEMBER:
            raise invalid("role", "member is not a role in a workspace; remove the user's role there instead")
        now = self._core.clock.time()

        def work(connection: Connection) -> WorkspaceRole:
            user = users.get(connection, number=user_id)
            workspace = workspaces.get(connection, number=workspace_id)
            key = {"user": user.number, "workspace": workspace.number}
            if workspace_roles.assign(connection, **key, role=role, now=now):
                label = f"workspace {workspace.name}"
                audit.record(connection, "assign_role", label, now=now, user=user.name, role=role.value)
            return workspace_roles.get(connection, **key)

        return pb2.AssignRoleResponse(role=workspace_role_message(await self._core.database.write(work)))

    async def RemoveRole(self, request: pb2.RemoveRoleRequest, context: Any) -> pb2.RemoveRoleResponse:
        """Takes a user's role in a workspace away."""
        user_id = required_id(request.user_id, field="user_id")
        workspace_id = required_id(request.workspace_id, field="workspace_id")
        now = self._core.clock.time()

        def work(connection: Connection) -> None:
            user = users.get(connection, number=user_id)
            workspace = workspaces.get(connection, number=workspace_id)
            if workspace_roles.remove(connection, user=user.number, workspace=workspace.number):
                label = f"workspace {workspace.name}"
                audit.record(connection, "remove_role", label, now=now, user=user.name)

        await self._core.database.write(work)
        return pb2.RemoveRoleResponse()

    async def ListRoles(self, request: pb2.ListRolesRequest, context: Any) -> pb2.ListRolesResponse:
        """Lists roles in workspaces that the caller may see."""
        table = tables.workspace_roles
        columns = {"user_ids": table.c.user_number, "workspace_ids": table.c.workspace_number}
        query = workspace_roles.all_roles().where(
            *any_of(request, columns), *seen_in(table.c.workspace_number)
        )
        page = await self._core.database.read(lambda c: workspace_roles.ORDERING.page(c, request, query))
        return pb2.ListRolesResponse(
            roles=[workspace_role_message(workspace_roles.workspace_role(row)) for row in page.rows],
            next_page_token=page.next_page_token,
        )

    async def FindWorkspaces(
        self, request: pb2.FindWorkspacesRequest, context: Any
    ) -> pb2.FindWorkspacesResponse:
        """Returns the workspaces of experiments, trials and allocations."""
        asked: dict[Kind, Sequence[str]] = {
            Kind.EXPERIMENT: request.experiment_ids,
            Kind.TRIAL: request.trial_ids,
            Kind.ALLOCATION: request.allocation_ids,
        }
        for kind, keys in asked.items():
            if len(keys) > _MAX_OBJECTS:
                field = f"{kind.value}_ids"
                raise invalid(field, f"{field} has {len(keys)} values; {_MAX_OBJECTS} are allowed")
        resources = [resource for kind, keys in asked.items() for resource in named(kind, keys)]
        located = await self._core.database.read(lambda c: locations.workspaces_of(c, resources))
        response = pb2.FindWorkspacesResponse()
        answers = {
            Kind.EXPERIMENT: response.experiments,
            Kind.TRIAL: response.trials,
            Kind.ALLOCATION: response.allocations,
        }
        for resource, workspace_id in located.items():
            answers[resource.kind][resource.key] = workspace_id
        return response
