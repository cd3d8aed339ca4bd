"""The handlers of WorkspacesService for workspaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import workspace_pb2
from resolute.api.experiments.v1 import workspaces_service_pb2 as pb2
from resolute_experiments.accounts.names import check_label
from resolute_experiments.accounts.owners import owner_of_new
from resolute_experiments.accounts.servicers.workspace_messages import (
    new_workspace_message,
    quota_of,
    workspace_message,
    workspace_messages,
)
from resolute_experiments.accounts.storage_quotas import StorageQuota
from resolute_experiments.accounts.store import workspace_roles, workspaces
from resolute_experiments.accounts.store.workspaces import Workspace
from resolute_experiments.context import ServiceContext
from resolute_experiments.store import audit
from resolute_experiments.store import schema as tables
from resolute_experiments.store.schema import IDEMPOTENCY_KEYS
from resolute_serving.context import Role
from resolute_serving.filters import any_of, equals, seen_in
from resolute_serving.updates import check_etag, update_paths
from resolute_serving.validation import required_id

_UPDATABLE = ("name", "archived")


class WorkspaceHandlers:
    """The handlers of workspaces.

    Args:
        core: The context that all handlers share.
        storage_quota: Reads the usage of checkpoint storage.
    """

    def __init__(self, core: ServiceContext, storage_quota: StorageQuota) -> None:
        self._core = core
        self._storage_quota = storage_quota

    async def CreateWorkspace(
        self, request: pb2.CreateWorkspaceRequest, context: Any
    ) -> pb2.CreateWorkspaceResponse:
        """Creates a workspace."""
        check_label(request.name, field="name")
        now = self._core.clock.time()

        def work(connection: Connection) -> workspace_pb2.Workspace:
            created: list[Workspace] = []

            def create() -> str:
                owner = owner_of_new(connection, request)
                made = workspaces.create(connection, request.name, owner=owner, now=now)
                if not request.HasField("owner_id"):
                    _lead(connection, made, now=now)
                audit.record(connection, "create_workspace", f"workspace {made.name}", now=now)
                created.append(made)
                return str(made.number)

            number = IDEMPOTENCY_KEYS.once(connection, request, create, now=now)
            if created:
                return new_workspace_message(created[0])
            return workspace_message(connection, workspaces.get(connection, number=int(number)))

        return pb2.CreateWorkspaceResponse(workspace=await self._core.database.write(work))

    async def GetWorkspace(self, request: pb2.GetWorkspaceRequest, context: Any) -> pb2.GetWorkspaceResponse:
        """Returns a workspace with everything that it uses."""
        number = required_id(request.workspace_id, field="workspace_id")
        workspace = await self._core.database.read(
            lambda c: workspace_message(c, workspaces.get(c, number=number))
        )
        workspace.usage.storage_bytes = await self._storage_quota.used(number)
        return pb2.GetWorkspaceResponse(workspace=workspace)

    async def ListWorkspaces(
        self, request: pb2.ListWorkspacesRequest, context: Any
    ) -> pb2.ListWorkspacesResponse:
        """Lists workspaces."""
        table = tables.workspaces
        query = workspaces.ALL.where(
            *any_of(request, {"names": table.c.name, "owner_ids": tables.users.c.number}),
            *equals(request, {"archived": table.c.archived}),
            *seen_in(table.c.number),
        )

        def work(connection: Connection) -> pb2.ListWorkspacesResponse:
            page = workspaces.ORDERING.page(connection, request, query)
            return pb2.ListWorkspacesResponse(
                workspaces=workspace_messages(connection, [workspaces.workspace(row) for row in page.rows]),
                next_page_token=page.next_page_token,
            )

        return await self._core.database.read(work)

    async def UpdateWorkspace(
        self, request: pb2.UpdateWorkspaceRequest, context: Any
    ) -> pb2.UpdateWorkspaceResponse:
        """Renames a workspace, archives it or opens it again."""
        wanted = request.workspace
        paths = update_paths(request.update_mask, allowed=_UPDATABLE)
        if "name" in paths:
            check_label(wanted.name, field="workspace.name")

        def change(connection: Connection, before: Workspace) -> Workspace:
            values = {path: getattr(wanted if path in paths else before, path) for path in _UPDATABLE}
            return workspaces.update(connection, before, **values)

        number = required_id(wanted.workspace_id, field="workspace.workspace_id")
        changed = await self._change(
            number, change, etag=request.etag, action="update_workspace", fields=sorted(paths)
        )
        return pb2.UpdateWorkspaceResponse(workspace=changed)

    async def SetQuota(self, request: pb2.SetQuotaRequest, context: Any) -> pb2.SetQuotaResponse:
        """Sets what a workspace may use."""
        quota = quota_of(request.quota)
        changed = await self._change(
            required_id(request.workspace_id, field="workspace_id"),
            lambda c, before: workspaces.set_quota(c, before, quota),
            etag=request.etag,
            action="set_quota",
            live_experiments=quota.live_experiments,
            slots=quota.slots,
            storage_bytes=quota.storage_bytes,
        )
        return pb2.SetQuotaResponse(workspace=changed)

    async def DeleteWorkspace(
        self, request: pb2.DeleteWorkspaceRequest, context: Any
    ) -> pb2.DeleteWorkspaceResponse:
        """Deletes a workspace that holds no experiments."""
        number, now = required_id(request.workspace_id, field="workspace_id"), self._core.clock.time()

        def work(connection: Connection) -> None:
            workspace = workspaces.get(connection, number=number)
            workspaces.delete(connection, workspace)
            audit.record(connection, "delete_workspace", f"workspace {workspace.name}", now=now)

        await self._core.database.write(work)
        return pb2.DeleteWorkspaceResponse()

    async def _change(
        self,
        number: int,
        change: Callable[[Connection, Workspace], Workspace],
        *,
        etag: str,
        action: str,
        **detail: Any,
    ) -> workspace_pb2.Workspace:
        now = self._core.clock.time()

        def work(connection: Connection) -> workspace_pb2.Workspace:
            before = workspaces.get(connection, number=number)
            check_etag(etag, revision=before.revision, resource=f"workspace {before.name}")
            after = change(connection, before)
            audit.record(connection, action, f"workspace {before.name}", now=now, **detail)
            return workspace_message(connection, after)

        return await self._core.database.write(work)


def _lead(connection: Connection, workspace: Workspace, *, now: float) -> None:
    """Makes the user who created a workspace an admin of it."""
    number = audit.caller_id(connection)
    if number is not None:
        workspace_roles.insert(connection, user=number, workspace=workspace.number, role=Role.ADMIN, now=now)
