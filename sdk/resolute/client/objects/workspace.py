"""Workspaces and projects as scripts use them."""

from __future__ import annotations

from resolute.client.schema.accounts import ProjectRecord, QuotaRecord, WorkspaceRecord
from resolute.client.services import Services


class Project:
    """Where experiments are kept within a workspace. Attributes are as they were when it was last read.

    Args:
        services: The cluster.
        record: What is known of it.
    """

    def __init__(self, services: Services, record: ProjectRecord) -> None:
        self._services = services
        self._record = record

    def __repr__(self) -> str:
        return f"Project(id={self.id}, {self.workspace}/{self.name})"

    @property
    def id(self) -> int:
        """The small number that people use."""
        return self._record.id

    @property
    def name(self) -> str:
        """Name within its workspace."""
        return self._record.name

    @property
    def workspace(self) -> str:
        """Name of its workspace."""
        return self._record.workspace

    @property
    def description(self) -> str:
        """What it is about."""
        return self._record.description

    @property
    def notes(self) -> str:
        """Notes of the people who work on it."""
        return self._record.notes

    @property
    def archived(self) -> bool:
        """Whether it takes no more experiments."""
        return self._record.archived

    @property
    def experiment_count(self) -> int:
        """Experiments in it, ended ones too."""
        return self._record.experiment_count

    def reload(self) -> None:
        """Reads it again."""
        self._record = self._services.workspaces.get_project(self.id)

    def set_description(self, description: str) -> None:
        """Changes what it is about."""
        self._record = self._services.workspaces.update_project(self.id, description=description)

    def set_notes(self, notes: str) -> None:
        """Replaces the notes."""
        self._record = self._services.workspaces.update_project(self.id, notes=notes)

    def archive(self) -> None:
        """Lets it take no more experiments."""
        self._record = self._services.workspaces.update_project(self.id, archived=True)

    def unarchive(self) -> None:
        """Lets it take experiments again."""
        self._record = self._services.workspaces.update_project(self.id, archived=False)


class Workspace:
    """Where experiments belong, with bounds on what they use. Attributes are as they were when last read.

    Args:
        services: The cluster.
        record: What is known of it.
    """

    def __init__(self, services: Services, record: WorkspaceRecord) -> None:
        self._services = services
        self._record = record

    def __repr__(self) -> str:
        return f"Workspace(id={self.id}, {self.name!r})"

    @property
    def id(self) -> int:
        """The small number that people use."""
        return self._record.id

    @property
    def name(self) -> str:
        """Name, which never changes."""
        return self._record.name

    @property
    def archived(self) -> bool:
        """Whether it takes no more experiments."""
        return self._record.archived

    @property
    def quota(self) -> QuotaRecord:
        """What its experiments may use together."""
        return self._record.quota

    @property
    def used(self) -> QuotaRecord:
        """What its experiments used when it was last read."""
        return self._record.used

    def reload(self) -> None:
        """Reads it again."""
        self._record = self._services.workspaces.get(self.id)

    def archive(self) -> None:
        """Lets it take no more experiments."""
        self._record = self._services.workspaces.archive(self.id, archived=True)

    def unarchive(self) -> None:
        """Lets it take experiments again."""
        self._record = self._services.workspaces.archive(self.id, archived=False)

    def set_quota(self, *, live_experiments: int, slots: int, storage_bytes: int = 0) -> None:
        """Bounds what its experiments use together; zero for no bound."""
        self._record = self._services.workspaces.set_quota(
            self.id, live_experiments=live_experiments, slots=slots, storage_bytes=storage_bytes
        )

    def create_project(self, name: str, description: str | None = None) -> Project:
        """Creates a project in it.

        Raises:
            AlreadyExistsError: The name is taken here.
        """
        record = self._services.workspaces.create_project(self.name, name, description=description or "")
        return Project(self._services, record)

    def get_project(self, project_name: str) -> Project:
        """Gives a project of it.

        Raises:
            NotFoundError: There is none of this name.
        """
        return Project(self._services, self._services.workspaces.find_project(self.name, project_name))

    def list_projects(self) -> list[Project]:
        """Lists its projects by name."""
        found = self._services.workspaces.list_projects(self.id)
        return [Project(self._services, record) for record in found]

    def delete_project(self, name: str) -> None:
        """Removes a project of it.

        Raises:
            FailedPreconditionError: The project holds experiments.
        """
        self._services.workspaces.delete_project(self.get_project(name).id)
