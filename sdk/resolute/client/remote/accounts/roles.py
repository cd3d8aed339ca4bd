"""Roles of users in single workspaces."""

from __future__ import annotations

from collections.abc import Iterator

from resolute.api.experiments.v1 import access_service_pb2_grpc, role_pb2, roles_service_pb2_grpc
from resolute.api.experiments.v1 import roles_service_pb2 as pb2
from resolute.client.connection.paging import all_items
from resolute.client.connection.session import Session
from resolute.client.connection.user_ids import user_id
from resolute.client.remote.accounts.access import role_number
from resolute.client.remote.accounts.workspaces import Workspaces
from resolute.client.schema.accounts import UserRole, WorkspaceRoleRecord
from resolute.contracts.messages import from_message


class Roles:
    """Calls of the roles service. Users and workspaces are named by name or number.

    Args:
        session: The connection.
        workspaces: Calls that look up workspaces by name.
    """

    def __init__(self, session: Session, workspaces: Workspaces) -> None:
        self._stub = session.stub(roles_service_pb2_grpc.RolesServiceStub)
        self._access = session.stub(access_service_pb2_grpc.AccessServiceStub)
        self._workspaces = workspaces

    def assign(self, user: str | int, workspace: str | int, role: UserRole) -> WorkspaceRoleRecord:
        """Gives a user a role in a workspace, in place of the one that the user had there.

        Raises:
            NotFoundError: There is no such user or workspace.
            PermissionDeniedError: The caller is no admin of the workspace.
        """
        request = pb2.AssignRoleRequest(
            user_id=self._user_id(user),
            workspace_id=self._workspaces.id_of(workspace),
            role=role_number(role),
        )
        return _role(self._stub.AssignRole(request).role)

    def remove(self, user: str | int, workspace: str | int) -> None:
        """Takes the role that a user has in a workspace away; nothing happens if there is none."""
        request = pb2.RemoveRoleRequest(
            user_id=self._user_id(user), workspace_id=self._workspaces.id_of(workspace)
        )
        self._stub.RemoveRole(request)

    def list(
        self, *, user: str | int | None = None, workspace: str | int | None = None
    ) -> Iterator[WorkspaceRoleRecord]:
        """Yields roles in the workspaces that the caller may see, by users.

        Args:
            user: Only roles of this user.
            workspace: Only roles in this workspace.
        """
        request = pb2.ListRolesRequest(
            user_ids=[] if user is None else [self._user_id(user)],
            workspace_ids=[] if workspace is None else [self._workspaces.id_of(workspace)],
        )
        for message in all_items(self._stub.ListRoles, request, "roles"):
            yield _role(message)

    def _user_id(self, user: str | int) -> int:
        return user if isinstance(user, int) else user_id(self._access, user)


def _role(message: role_pb2.WorkspaceRole) -> WorkspaceRoleRecord:
    return from_message(
        WorkspaceRoleRecord, message, user=message.user_name, workspace=message.workspace_name
    )
