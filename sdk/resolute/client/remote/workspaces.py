"""Workspaces and projects."""

from __future__ import annotations

from collections.abc import Iterator

from resolute.api.experiments.v1 import workspaces_service_pb2 as pb2
from resolute.api.experiments.v1 import workspaces_service_pb2_grpc
from resolute.client.connection.paging import all_items
from resolute.client.connection.session import Session
from resolute.client.schema.accounts import ProjectRecord, QuotaRecord, WorkspaceRecord
from resolute.client.schema.convert import datetime_field, experiment_key


class Workspaces:
    """Calls of the workspaces service. A workspace is named by its name or its number.

    Args:
        session: The connection.
    """

    def __init__(self, session: Session) -> None:
        self._stub = session.stub(workspaces_service_pb2_grpc.WorkspacesServiceStub)

    def create(self, name: str) -> WorkspaceRecord:
        """Creates a workspace.

        Raises:
            AlreadyExistsError: The name is taken.
            InvalidArgumentError: It is no name.
        """
        return _workspace(self._stub.CreateWorkspace(pb2.CreateWorkspaceRequest(name=name)).workspace)

    def get(self, workspace: str | int) -> WorkspaceRecord:
        """Gives a workspace.

        Raises:
            NotFoundError: There is none.
        """
        request = pb2.GetWorkspaceRequest(workspace=_key(workspace))
        return _workspace(self._stub.GetWorkspace(request).workspace)

    def list(self) -> Iterator[WorkspaceRecord]:
        """Yields all workspaces by name."""
        for message in all_items(self._stub.ListWorkspaces, pb2.ListWorkspacesRequest(), "workspaces"):
            yield _workspace(message)

    def archive(self, workspace: str | int, *, archived: bool) -> WorkspaceRecord:
        """Archives a workspace, which then takes no experiments, or opens it again."""
        request = pb2.ArchiveWorkspaceRequest(workspace=_key(workspace), archived=archived)
        return _workspace(self._stub.ArchiveWorkspace(request).workspace)

    def set_quota(
        self, workspace: str | int, *, live_experiments: int, slots: int, storage_bytes: int = 0
    ) -> WorkspaceRecord:
        """Sets what a workspace may use; zero for no bound."""
        quota = pb2.Quota(live_experiments=live_experiments, slots=slots, storage_bytes=storage_bytes)
        request = pb2.SetQuotaRequest(workspace=_key(workspace), quota=quota)
        return _workspace(self._stub.SetQuota(request).workspace)

    def delete(self, workspace: str | int) -> None:
        """Removes a workspace.

        Raises:
            FailedPreconditionError: It holds experiments.
        """
        self._stub.DeleteWorkspace(pb2.DeleteWorkspaceRequest(workspace=_key(workspace)))

    def create_project(self, workspace: str, name: str, *, description: str = "") -> ProjectRecord:
        """Creates a project.

        Raises:
            NotFoundError: The workspace does not exist.
            AlreadyExistsError: The name is taken there.
        """
        request = pb2.CreateProjectRequest(
            name=pb2.ProjectName(workspace=workspace, project=name), description=description
        )
        return _project(self._stub.CreateProject(request).project)

    def get_project(self, number: int) -> ProjectRecord:
        """Gives a project by its number.

        Raises:
            NotFoundError: There is none.
        """
        request = pb2.GetProjectRequest(project=pb2.ProjectKey(project_id=number))
        return _project(self._stub.GetProject(request).project)

    def find_project(self, workspace: str, name: str) -> ProjectRecord:
        """Gives a project by its names.

        Raises:
            NotFoundError: There is none.
        """
        request = pb2.GetProjectRequest(project=_project_key(workspace, name))
        return _project(self._stub.GetProject(request).project)

    def list_projects(self, workspace: str | int) -> Iterator[ProjectRecord]:
        """Yields the projects of a workspace by name."""
        request = pb2.ListProjectsRequest(workspace=_key(workspace))
        for message in all_items(self._stub.ListProjects, request, "projects"):
            yield _project(message)

    def update_project(
        self,
        number: int,
        *,
        description: str | None = None,
        notes: str | None = None,
        archived: bool | None = None,
    ) -> ProjectRecord:
        """Changes a project; None leaves a thing as it is."""
        request = pb2.UpdateProjectRequest(
            project=pb2.ProjectKey(project_id=number), description=description, notes=notes, archived=archived
        )
        return _project(self._stub.UpdateProject(request).project)

    def delete_project(self, number: int) -> None:
        """Removes a project.

        Raises:
            FailedPreconditionError: It holds experiments.
        """
        self._stub.DeleteProject(pb2.DeleteProjectRequest(project=pb2.ProjectKey(project_id=number)))

    def move(self, experiment: int | str, *, workspace: str, project: str) -> ProjectRecord:
        """Moves an experiment to another project; to another workspace only when it has ended."""
        request = pb2.MoveExperimentRequest(
            experiment=experiment_key(experiment), project=_project_key(workspace, project)
        )
        return _project(self._stub.MoveExperiment(request).project)


def _key(workspace: str | int) -> pb2.WorkspaceKey:
    if isinstance(workspace, int):
        return pb2.WorkspaceKey(workspace_id=workspace)
    return pb2.WorkspaceKey(name=workspace)


def _project_key(workspace: str, name: str) -> pb2.ProjectKey:
    return pb2.ProjectKey(name=pb2.ProjectName(workspace=workspace, project=name))


def _quota(message: pb2.Quota) -> QuotaRecord:
    return QuotaRecord(
        live_experiments=message.live_experiments, slots=message.slots, storage_bytes=message.storage_bytes
    )


def _workspace(message: pb2.Workspace) -> WorkspaceRecord:
    return WorkspaceRecord(
        id=message.workspace_id,
        name=message.name,
        owner=message.owner,
        archived=message.archived,
        quota=_quota(message.quota),
        used=_quota(message.used),
        project_count=message.project_count,
        experiment_count=message.experiment_count,
        create_time=datetime_field(message, "create_time"),
    )


def _project(message: pb2.Project) -> ProjectRecord:
    return ProjectRecord(
        id=message.project_id,
        name=message.name,
        workspace=message.workspace,
        description=message.description,
        notes=message.notes,
        owner=message.owner,
        archived=message.archived,
        experiment_count=message.experiment_count,
        create_time=datetime_field(message, "create_time"),
    )
