"""Handlers of WorkspacesService."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import workspaces_service_pb2 as pb2
from resolute.api.experiments.v1 import workspaces_service_pb2_grpc
from resolute.errors import FailedPreconditionError, InvalidArgumentError, Violation
from resolute_experiments.admission.storage_quotas import StorageQuota
from resolute_experiments.context import ServiceContext
from resolute_experiments.servicers.messages import timestamp
from resolute_experiments.states import ENDED_EXPERIMENTS
from resolute_experiments.store import access, experiments, projects, workspaces
from resolute_experiments.store.projects import Project
from resolute_experiments.store.workspaces import Quota, Workspace
from resolute_serving.context import actor
from resolute_serving.pagination import decode_token, encode_token, page_size

_NAME_LENGTH = 80

T = TypeVar("T")


class WorkspacesServicer(workspaces_service_pb2_grpc.WorkspacesServiceServicer):
    """Where experiments belong.

    Args:
        core: What all handlers of this service share.
        storage_quota: Knows what checkpoints take.
    """

    def __init__(self, core: ServiceContext, storage_quota: StorageQuota) -> None:
        self._core = core
        self._storage_quota = storage_quota

    async def CreateWorkspace(
        self, request: pb2.CreateWorkspaceRequest, context: Any
    ) -> pb2.CreateWorkspaceResponse:
        """Creates a workspace."""
        _check_name(request.name)
        now = self._core.clock.time()

        def work(connection: Connection) -> pb2.Workspace:
            made = workspaces.create(connection, request.name, owner=actor(), now=now)
            return _workspace_message(connection, made)

        made = await self._change(work, "create_workspace", f"workspace {request.name}")
        return pb2.CreateWorkspaceResponse(workspace=made)

    async def GetWorkspace(self, request: pb2.GetWorkspaceRequest, context: Any) -> pb2.GetWorkspaceResponse:
        """Gives a workspace with what it uses."""
        found = await self._core.database.read(
            lambda c: _workspace_message(c, _workspace(c, request.workspace))
        )
        found.used.storage_bytes = await self._storage_quota.used(found.name)
        return pb2.GetWorkspaceResponse(workspace=found)

    async def ListWorkspaces(
        self, request: pb2.ListWorkspacesRequest, context: Any
    ) -> pb2.ListWorkspacesResponse:
        """Lists workspaces by name."""
        limit, after = page_size(request.page_size), decode_token(request) or ""

        def work(connection: Connection) -> list[pb2.Workspace]:
            found = workspaces.page(connection, after=after, limit=limit + 1)
            return [_workspace_message(connection, workspace) for workspace in found]

        found = await self._core.database.read(work)
        return pb2.ListWorkspacesResponse(
            workspaces=found[:limit],
            next_page_token=encode_token(request, found[limit - 1].name) if len(found) > limit else "",
        )

    async def ArchiveWorkspace(
        self, request: pb2.ArchiveWorkspaceRequest, context: Any
    ) -> pb2.ArchiveWorkspaceResponse:
        """Archives a workspace or opens it again."""

        def work(connection: Connection, workspace: Workspace) -> None:
            if workspace.name == workspaces.UNCATEGORIZED and request.archived:
                raise FailedPreconditionError(
                    f"workspace {workspace.name!r} takes the experiments that name none, so it stays open"
                )
            workspaces.archive(connection, workspace, archived=request.archived)

        action = "archive_workspace" if request.archived else "unarchive_workspace"
        return pb2.ArchiveWorkspaceResponse(
            workspace=await self._change_workspace(request.workspace, work, action)
        )

    async def SetQuota(self, request: pb2.SetQuotaRequest, context: Any) -> pb2.SetQuotaResponse:
        """Sets what a workspace may use."""
        quota = Quota(request.quota.live_experiments, request.quota.slots, request.quota.storage_bytes)
        if min(quota.live_experiments, quota.slots, quota.storage_bytes) < 0:
            raise InvalidArgumentError("a bound is negative; it is zero for none, or above")
        changed = await self._change_workspace(
            request.workspace,
            lambda c, workspace: workspaces.set_quota(c, workspace, quota),
            "set_quota",
            live_experiments=quota.live_experiments,
            slots=quota.slots,
            storage_bytes=quota.storage_bytes,
        )
        return pb2.SetQuotaResponse(workspace=changed)

    async def DeleteWorkspace(
        self, request: pb2.DeleteWorkspaceRequest, context: Any
    ) -> pb2.DeleteWorkspaceResponse:
        """Removes a workspace that holds no experiments."""

        def work(connection: Connection) -> None:
            workspace = _workspace(connection, request.workspace)
            workspaces.delete(connection, workspace)
            self._record(connection, "delete_workspace", f"workspace {workspace.name}")

        await self._core.database.write(work)
        return pb2.DeleteWorkspaceResponse()

    async def CreateProject(
        self, request: pb2.CreateProjectRequest, context: Any
    ) -> pb2.CreateProjectResponse:
        """Creates a project in a workspace."""
        name = request.name
        _check_name(name.project)
        now = self._core.clock.time()

        def work(connection: Connection) -> pb2.Project:
            made = projects.create(
                connection,
                name.workspace,
                name.project,
                description=request.description,
                owner=actor(),
                now=now,
            )
            return _project_message(connection, made)

        made = await self._change(work, "create_project", f"project {name.workspace}/{name.project}")
        return pb2.CreateProjectResponse(project=made)

    async def GetProject(self, request: pb2.GetProjectRequest, context: Any) -> pb2.GetProjectResponse:
        """Gives a project."""
        found = await self._core.database.read(lambda c: _project_message(c, _project(c, request.project)))
        return pb2.GetProjectResponse(project=found)

    async def ListProjects(self, request: pb2.ListProjectsRequest, context: Any) -> pb2.ListProjectsResponse:
        """Lists the projects of a workspace by name."""
        limit, after = page_size(request.page_size), decode_token(request) or ""

        def work(connection: Connection) -> list[pb2.Project]:
            workspace = _workspace(connection, request.workspace)
            found = projects.page(connection, workspace.name, after=after, limit=limit + 1)
            return [_project_message(connection, project) for project in found]

        found = await self._core.database.read(work)
        return pb2.ListProjectsResponse(
            projects=found[:limit],
            next_page_token=encode_token(request, found[limit - 1].name) if len(found) > limit else "",
        )

    async def UpdateProject(
        self, request: pb2.UpdateProjectRequest, context: Any
    ) -> pb2.UpdateProjectResponse:
        """Changes a project's texts, archives it or opens it again."""

        def work(connection: Connection) -> pb2.Project:
            project = _project(connection, request.project)
            if project.name == project.workspace == workspaces.UNCATEGORIZED and request.archived:
                raise FailedPreconditionError(
                    f"project {project.name!r} takes the experiments that name none, so it stays open"
                )
            projects.update(
                connection,
                project,
                description=request.description if request.HasField("description") else project.description,
                notes=request.notes if request.HasField("notes") else project.notes,
                archived=request.archived if request.HasField("archived") else project.archived,
            )
            self._record(connection, "update_project", f"project {project.workspace}/{project.name}")
            return _project_message(connection, projects.get(connection, number=project.number))

        return pb2.UpdateProjectResponse(project=await self._core.database.write(work))

    async def DeleteProject(
        self, request: pb2.DeleteProjectRequest, context: Any
    ) -> pb2.DeleteProjectResponse:
        """Removes a project that holds no experiments."""

        def work(connection: Connection) -> None:
            project = _project(connection, request.project)
            projects.delete(connection, project)
            self._record(connection, "delete_project", f"project {project.workspace}/{project.name}")

        await self._core.database.write(work)
        return pb2.DeleteProjectResponse()

    async def MoveExperiment(
        self, request: pb2.MoveExperimentRequest, context: Any
    ) -> pb2.MoveExperimentResponse:
        """Moves an experiment to another project; to another workspace only when it has ended."""

        def work(connection: Connection) -> pb2.Project:
            experiment = self._core.experiment(connection, request.experiment)
            project = _project(connection, request.project)
            if project.workspace != experiment.workspace and experiment.state not in ENDED_EXPERIMENTS:
                raise FailedPreconditionError(
                    f"{experiment.label} is {experiment.state.value}; its trials hold tokens and quota of "
                    f"workspace {experiment.workspace!r}, so it leaves that only when it has ended"
                )
            experiments.move(connection, experiment, workspace=project.workspace, project=project.name)
            where = f"{project.workspace}/{project.name}"
            self._record(connection, "move", experiment.label, project=where)
            return _project_message(connection, project)

        return pb2.MoveExperimentResponse(project=await self._core.database.write(work))

    async def _change_workspace(
        self,
        key: pb2.WorkspaceKey,
        change: Callable[[Connection, Workspace], None],
        action: str,
        **detail: Any,
    ) -> pb2.Workspace:
        def work(connection: Connection) -> pb2.Workspace:
            workspace = _workspace(connection, key)
            change(connection, workspace)
            self._record(connection, action, f"workspace {workspace.name}", **detail)
            return _workspace_message(connection, workspaces.get(connection, name=workspace.name))

        return await self._core.database.write(work)

    async def _change(self, work: Callable[[Connection], T], action: str, resource: str) -> T:
        def recorded(connection: Connection) -> T:
            result = work(connection)
            self._record(connection, action, resource)
            return result

        return await self._core.database.write(recorded)

    def _record(self, connection: Connection, action: str, resource: str, **detail: Any) -> None:
        access.record(connection, action, resource, now=self._core.clock.time(), **detail)


def _check_name(name: str) -> None:
    if not name.strip() or len(name) > _NAME_LENGTH or not name.isprintable():
        message = f"{name!r} is no name: 1 to {_NAME_LENGTH} printable characters, not only spaces"
        raise InvalidArgumentError(message, violations=[Violation("name", message)])


def _workspace(connection: Connection, key: pb2.WorkspaceKey) -> Workspace:
    if key.WhichOneof("key") is None:
        raise InvalidArgumentError("the request names no workspace; give its name or its number")
    return workspaces.get(connection, number=key.workspace_id, name=key.name)


def _project(connection: Connection, key: pb2.ProjectKey) -> Project:
    if key.WhichOneof("key") is None:
        raise InvalidArgumentError("the request names no project; give its names or its number")
    name = key.name
    return projects.get(connection, number=key.project_id, workspace=name.workspace, name=name.project)


def _quota_message(quota: Quota) -> pb2.Quota:
    return pb2.Quota(
        live_experiments=quota.live_experiments, slots=quota.slots, storage_bytes=quota.storage_bytes
    )


def _workspace_message(connection: Connection, workspace: Workspace) -> pb2.Workspace:
    return pb2.Workspace(
        workspace_id=workspace.number,
        name=workspace.name,
        owner=workspace.owner,
        archived=workspace.archived,
        quota=_quota_message(workspace.quota),
        used=_quota_message(workspaces.used(connection, workspace.name)),
        project_count=workspaces.project_count(connection, workspace.name),
        experiment_count=workspaces.experiment_count(connection, workspace.name),
        create_time=timestamp(workspace.created_at),
    )


def _project_message(connection: Connection, project: Project) -> pb2.Project:
    return pb2.Project(
        project_id=project.number,
        name=project.name,
        workspace=project.workspace,
        description=project.description,
        notes=project.notes,
        owner=project.owner,
        archived=project.archived,
        experiment_count=workspaces.experiment_count(connection, project.workspace, project.name),
        create_time=timestamp(project.created_at),
    )
