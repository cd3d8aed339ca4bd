"""The handlers of WorkspacesService for projects."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import project_pb2
from resolute.api.experiments.v1 import workspaces_service_pb2 as pb2
from resolute.errors import FailedPreconditionError
from resolute_experiments.accounts.names import check_label
from resolute_experiments.accounts.owners import owner_of_new
from resolute_experiments.accounts.servicers.workspace_messages import project_message, project_messages
from resolute_experiments.accounts.store import projects, workspaces
from resolute_experiments.accounts.store.projects import Project
from resolute_experiments.context import ServiceContext
from resolute_experiments.states import ENDED_EXPERIMENTS
from resolute_experiments.store import audit, experiments
from resolute_experiments.store import schema as tables
from resolute_experiments.store.schema import IDEMPOTENCY_KEYS
from resolute_serving.filters import any_of, equals, seen_in
from resolute_serving.updates import check_etag, update_paths
from resolute_serving.validation import check_length, required_id

_DESCRIPTION_LENGTH = 10_000
_NOTES_LENGTH = 100_000
_UPDATABLE = ("name", "description", "notes", "archived")


class ProjectHandlers:
    """The handlers of projects: groups of experiments within a workspace.

    Args:
        core: The context that all handlers share.
    """

    def __init__(self, core: ServiceContext) -> None:
        self._core = core

    async def CreateProject(
        self, request: pb2.CreateProjectRequest, context: Any
    ) -> pb2.CreateProjectResponse:
        """Creates a project in a workspace."""
        workspace_id = required_id(request.workspace_id, field="workspace_id")
        check_label(request.name, field="name")
        check_length(request.description, field="description", most=_DESCRIPTION_LENGTH)
        check_length(request.notes, field="notes", most=_NOTES_LENGTH)
        now = self._core.clock.time()

        def work(connection: Connection) -> project_pb2.Project:
            def create() -> str:
                made = projects.create(
                    connection,
                    workspaces.get(connection, number=workspace_id).name,
                    request.name,
                    description=request.description,
                    notes=request.notes,
                    owner=owner_of_new(connection, request),
                    now=now,
                )
                self._record(connection, "create_project", _label(made))
                return str(made.number)

            number = IDEMPOTENCY_KEYS.once(connection, request, create, now=now)
            return project_message(connection, projects.get(connection, number=int(number)))

        return pb2.CreateProjectResponse(project=await self._core.database.write(work))

    async def GetProject(self, request: pb2.GetProjectRequest, context: Any) -> pb2.GetProjectResponse:
        """Returns a project."""
        number = required_id(request.project_id, field="project_id")
        project = await self._core.database.read(lambda c: project_message(c, projects.get(c, number=number)))
        return pb2.GetProjectResponse(project=project)

    async def ListProjects(self, request: pb2.ListProjectsRequest, context: Any) -> pb2.ListProjectsResponse:
        """Lists projects."""
        table = tables.projects
        columns = {
            "names": table.c.name,
            "owner_ids": tables.users.c.number,
            "workspace_ids": tables.workspaces.c.number,
        }
        query = projects.all_projects().where(
            *any_of(request, columns),
            *equals(request, {"archived": table.c.archived}),
            *seen_in(tables.workspaces.c.number),
        )

        def work(connection: Connection) -> pb2.ListProjectsResponse:
            workspaces.require(connection, request.workspace_ids)
            page = projects.ORDERING.page(connection, request, query)
            return pb2.ListProjectsResponse(
                projects=project_messages(connection, [projects.project(row) for row in page.rows]),
                next_page_token=page.next_page_token,
            )

        return await self._core.database.read(work)

    async def UpdateProject(
        self, request: pb2.UpdateProjectRequest, context: Any
    ) -> pb2.UpdateProjectResponse:
        """Changes a project's name or texts, archives it or opens it again."""
        wanted = request.project
        paths = update_paths(request.update_mask, allowed=_UPDATABLE)
        number = required_id(wanted.project_id, field="project.project_id")
        if "name" in paths:
            check_label(wanted.name, field="project.name")
        if "description" in paths:
            check_length(wanted.description, field="project.description", most=_DESCRIPTION_LENGTH)
        if "notes" in paths:
            check_length(wanted.notes, field="project.notes", most=_NOTES_LENGTH)

        def work(connection: Connection) -> project_pb2.Project:
            before = projects.get(connection, number=number)
            check_etag(request.etag, revision=before.revision, resource=f"project {_label(before)}")
            values = {path: getattr(wanted if path in paths else before, path) for path in _UPDATABLE}
            after = projects.update(connection, before, **values)
            self._record(connection, "update_project", _label(before), fields=sorted(paths))
            return project_message(connection, after)

        return pb2.UpdateProjectResponse(project=await self._core.database.write(work))

    async def DeleteProject(
        self, request: pb2.DeleteProjectRequest, context: Any
    ) -> pb2.DeleteProjectResponse:
        """Deletes a project that holds no experiments."""
        number = required_id(request.project_id, field="project_id")

        def work(connection: Connection) -> None:
            project = projects.get(connection, number=number)
            projects.delete(connection, project)
            self._record(connection, "delete_project", _label(project))

        await self._core.database.write(work)
        return pb2.DeleteProjectResponse()

    async def MoveExperiment(
        self, request: pb2.MoveExperimentRequest, context: Any
    ) -> pb2.MoveExperimentResponse:
        """Moves an experiment to another project; to another workspace only when it has ended."""
        number = required_id(request.project_id, field="project_id")

        def work(connection: Connection) -> project_pb2.Project:
            experiment = self._core.experiment(connection, request.experiment)
            project = projects.get(connection, number=number)
            if project.workspace != experiment.workspace and experiment.state not in ENDED_EXPERIMENTS:
                raise FailedPreconditionError(
                    f"{experiment.label} is {experiment.state.value}; its trials hold tokens and quota of "
                    f"workspace {experiment.workspace!r}, so it leaves that only when it has ended"
                )
            experiments.move(connection, experiment, workspace=project.workspace, project=project.name)
            audit.record(
                connection, "move", experiment.label, now=self._core.clock.time(), project=_label(project)
            )
            return project_message(connection, projects.get(connection, number=number))

        return pb2.MoveExperimentResponse(project=await self._core.database.write(work))

    def _record(self, connection: Connection, action: str, label: str, **detail: Any) -> None:
        audit.record(connection, action, f"project {label}", now=self._core.clock.time(), **detail)


def _label(project: Project) -> str:
    return f"{project.workspace}/{project.name}"
