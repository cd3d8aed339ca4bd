"""Workspaces and projects."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from resolute.api.experiments.v1 import project_pb2, workspace_pb2, workspaces_service_pb2_grpc
from resolute.api.experiments.v1 import workspaces_service_pb2 as pb2
from resolute.client.connection.paging import all_items
from resolute.client.connection.session import Session
from resolute.client.schema.accounts import ProjectRecord, QuotaRecord, WorkspaceRecord
from resolute.client.schema.convert import experiment_key
from resolute.contracts.messages import from_message
from resolute.errors import NotFoundError


class Workspaces:
    """Calls of the workspaces service. A workspace is named by its name or its number.

    Args:
        session: The connection.
    """

    def __init__(self, session: Session) -> None:
        self._stub = session.stub(workspaces_service_pb2_grpc.WorkspacesServiceStub)

    def create(self, name: str, *, owner: int | None = None) -> WorkspaceRecord:
        """Creates a workspace.

        Args:
            name: Its name.
            owner: Id of the user whose it is, which admins of the cluster may name; None for the caller's.

        Raises:
            AlreadyExistsError: The name is taken.
            InvalidArgumentError: It is not a valid name.
        """
        request = pb2.CreateWorkspaceRequest(request_id=str(uuid.uuid4()), name=name, owner_id=owner)
        return _workspace(self._stub.CreateWorkspace(request).workspace)

    def get(self, workspace: str | int) -> WorkspaceRecord:
        """Returns a workspace.

        Raises:
            NotFoundError: There is none.
        """
        request = pb2.GetWorkspaceRequest(workspace_id=self.id_of(workspace))
        return _workspace(self._stub.GetWorkspace(request).workspace)

    def list(self) -> Iterator[WorkspaceRecord]:
        """Yields all workspaces by name."""
        for message in all_items(self._stub.ListWorkspaces, pb2.ListWorkspacesRequest(), "workspaces"):
            yield _workspace(message)

    def archive(self, workspace: str | int, *, archived: bool) -> WorkspaceRecord:
        """Archives a workspace, which then takes no experiments, or opens it again."""
        request = pb2.UpdateWorkspaceRequest(
            workspace=workspace_pb2.Workspace(workspace_id=self.id_of(workspace), archived=archived),
            update_mask=FieldMask(paths=["archived"]),
        )
        return _workspace(self._stub.UpdateWorkspace(request).workspace)

    def rename(self, workspace: str | int, name: str) -> WorkspaceRecord:
        """Gives a workspace another name.

        Raises:
            AlreadyExistsError: The name is taken.
            FailedPreconditionError: It is "Uncategorized", which keeps its name.
        """
        request = pb2.UpdateWorkspaceRequest(
            workspace=workspace_pb2.Workspace(workspace_id=self.id_of(workspace), name=name),
            update_mask=FieldMask(paths=["name"]),
        )
        return _workspace(self._stub.UpdateWorkspace(request).workspace)

    def set_quota(
        self, workspace: str | int, *, live_experiments: int, slots: int, storage_bytes: int = 0
    ) -> WorkspaceRecord:
        """Sets what a workspace may use; zero for no bound."""
        quota = workspace_pb2.Quota(
            live_experiments=live_experiments or None,
            slots=slots or None,
            storage_bytes=storage_bytes or None,
        )
        request = pb2.SetQuotaRequest(workspace_id=self.id_of(workspace), quota=quota)
        return _workspace(self._stub.SetQuota(request).workspace)

    def delete(self, workspace: str | int) -> None:
        """Removes a workspace.

        Raises:
            FailedPreconditionError: It holds experiments.
        """
        self._stub.DeleteWorkspace(pb2.DeleteWorkspaceRequest(workspace_id=self.id_of(workspace)))

    def create_project(
        self,
        workspace: str | int,
        name: str,
        *,
        description: str = "",
        notes: str = "",
        owner: int | None = None,
    ) -> ProjectRecord:
        """Creates a project.

        Args:
            workspace: Where.
            name: Its name.
            description: What it is about.
            notes: Notes in Markdown.
            owner: Id of the user whose it is, which admins of the cluster may name; None for the caller's.

        Raises:
            NotFoundError: The workspace does not exist.
            AlreadyExistsError: The name is taken there.
        """
        request = pb2.CreateProjectRequest(
            request_id=str(uuid.uuid4()),
            workspace_id=self.id_of(workspace),
            name=name,
            description=description,
            notes=notes,
            owner_id=owner,
        )
        return _project(self._stub.CreateProject(request).project)

    def get_project(self, number: int) -> ProjectRecord:
        """Returns a project by its number.

        Raises:
            NotFoundError: There is none.
        """
        request = pb2.GetProjectRequest(project_id=number)
        return _project(self._stub.GetProject(request).project)

    def find_project(self, workspace: str | int, name: str) -> ProjectRecord:
        """Returns a project by its names.

        Raises:
            NotFoundError: There is none.
        """
        request = pb2.ListProjectsRequest(workspace_ids=[self.id_of(workspace)], names=[name])
        projects = self._stub.ListProjects(request).projects
        if not projects:
            raise NotFoundError(
                f"project {name!r} does not exist in workspace {workspace!r}",
                resource=f"project {name}",
            )
        return _project(projects[0])

    def list_projects(self, workspace: str | int) -> Iterator[ProjectRecord]:
        """Yields the projects of a workspace by name."""
        request = pb2.ListProjectsRequest(workspace_ids=[self.id_of(workspace)])
        for message in all_items(self._stub.ListProjects, request, "projects"):
            yield _project(message)

    def update_project(
        self,
        number: int,
        *,
        name: str | None = None,
        description: str | None = None,
        notes: str | None = None,
        archived: bool | None = None,
    ) -> ProjectRecord:
        """Changes a project; None leaves a thing as it is."""
        given = {"name": name, "description": description, "notes": notes, "archived": archived}
        changes: dict[str, Any] = {path: value for path, value in given.items() if value is not None}
        request = pb2.UpdateProjectRequest(
            project=project_pb2.Project(project_id=number, **changes), update_mask=FieldMask(paths=changes)
        )
        return _project(self._stub.UpdateProject(request).project)

    def delete_project(self, number: int) -> None:
        """Removes a project.

        Raises:
            FailedPreconditionError: It holds experiments.
        """
        self._stub.DeleteProject(pb2.DeleteProjectRequest(project_id=number))

    def move(self, experiment: int | str, *, workspace: str, project: str) -> ProjectRecord:
        """Moves an experiment to another project; to another workspace only when it has ended."""
        request = pb2.MoveExperimentRequest(
            experiment=experiment_key(experiment), project_id=self.find_project(workspace, project).id
        )
        return _project(self._stub.MoveExperiment(request).project)

    def id_of(self, workspace: str | int | None) -> int:
        """Returns the id of a workspace; zero, which stands for the cluster, for None.

        Raises:
            NotFoundError: There is none.
        """
        if workspace is None or isinstance(workspace, int):
            return workspace or 0
        workspaces = self._stub.ListWorkspaces(pb2.ListWorkspacesRequest(names=[workspace])).workspaces
        if not workspaces:
            raise NotFoundError(f"workspace {workspace!r} does not exist", resource=f"workspace {workspace}")
        return int(workspaces[0].workspace_id)


def _workspace(message: workspace_pb2.Workspace) -> WorkspaceRecord:
    return from_message(
        WorkspaceRecord,
        message,
        id=message.workspace_id,
        owner=message.owner_name,
        used=from_message(QuotaRecord, message.usage),
        project_count=message.usage.projects,
        experiment_count=message.usage.experiments,
    )


def _project(message: project_pb2.Project) -> ProjectRecord:
    return from_message(
        ProjectRecord,
        message,
        id=message.project_id,
        workspace=message.workspace_name,
        owner=message.owner_name,
    )
