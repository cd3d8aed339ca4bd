"""The owners of new workspaces and projects."""

from __future__ import annotations

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import workspaces_service_pb2 as pb2
from resolute.errors import PermissionDeniedError
from resolute_experiments.accounts.store import users
from resolute_serving.context import Role, User, actor, current_principal
from resolute_serving.validation import required_id


def owner_of_new(
    connection: Connection, request: pb2.CreateWorkspaceRequest | pb2.CreateProjectRequest
) -> str:
    """Returns the name of the owner that a request asks for: its caller, or whom an admin names.

    Raises:
        PermissionDeniedError: It names another user, and the caller is no admin of the cluster.
        NotFoundError: There is no such user.
    """
    if not request.HasField("owner_id"):
        return actor()
    owner = users.get(connection, number=required_id(request.owner_id, field="owner_id"))
    caller = current_principal.get()
    if isinstance(caller, User) and caller.role is not Role.ADMIN and caller.name != owner.name:
        raise PermissionDeniedError(
            f"user {caller.name} may not make {owner.name} the owner; leave owner_id out or ask an admin"
        )
    return owner.name
