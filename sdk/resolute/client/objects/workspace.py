"""Workspaces and projects as scripts use them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from resolute.client.objects import project_notes
from resolute.client.objects.base import ArchivableObject
from resolute.client.objects.experiment import Experiment
from resolute.client.objects.refused import NO_POOLS, refusal
from resolute.client.remote.experiments import ExperimentFilter
from resolute.client.schema.accounts import (
    ProjectRecord,
    QuotaRecord,
    UserRole,
    WorkspaceRecord,
    WorkspaceRoleRecord,
)
from resolute.client.schema.records import ExperimentRecord


class Project(ArchivableObject[ProjectRecord]):
    """A group of experiments within a workspace. An archived one accepts no new experiments.

    Examples:
        >>> from resolute import client
        >>> project = client.create_workspace("vision").create_project("cats")
        >>> project.name, project.n_experiments
        ('cats', 0)
    """

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
    def notes(self) -> list[dict[str, str]]:
        """Notes of the people who work on it: a ``name`` and the ``contents`` of each."""
        return project_notes.parse(self._record.notes)

    @property
    def workspace_id(self) -> int:
        """Number of its workspace."""
        return self._record.workspace_id

    @property
    def username(self) -> str:
        """Who created it."""
        return self._record.owner

    @property
    def key(self) -> str | None:
        """Always None: projects have a number and a name."""
        return None

    @property
    def n_experiments(self) -> int:
        """Experiments in it, ended ones too."""
        return self._record.experiment_count

    @property
    def n_active_experiments(self) -> int:
        """Experiments in it that have not ended, as of now."""
        return sum(not record.state.is_terminal for record in self._experiments())

    @property
    def experiment_count(self) -> int:
        """Experiments in it, ended ones too."""
        return self._record.experiment_count

    def _read(self) -> ProjectRecord:
        return self._services.workspaces.get_project(self.id)

    def _set_archived(self, archived: bool) -> ProjectRecord:
        return self._services.workspaces.update_project(self.id, archived=archived)

    def set_description(self, description: str) -> None:
        """Changes what it is about."""
        self._record = self._services.workspaces.update_project(self.id, description=description)

    def set_notes(self, notes: str) -> None:
        """Replaces the notes by a text; each line ``## NAME`` begins a note."""
        self._record = self._services.workspaces.update_project(self.id, notes=notes)

    def add_note(self, name: str, contents: str) -> None:
        """Adds a note."""
        self.reload()
        self.set_notes(project_notes.text_of([*self.notes, {"name": name, "contents": contents}]))

    def remove_note(self, name: str) -> None:
        """Removes a note.

        Raises:
            ValueError: None or several have this name.
        """
        self.reload()
        notes = [note for note in self.notes if note["name"] == name]
        if len(notes) != 1:
            raise ValueError(f"project {self.name} has {len(notes)} notes named {name!r}")
        self.set_notes(project_notes.text_of([note for note in self.notes if note["name"] != name]))

    def set_name(self, name: str) -> None:
        """Changes its name.

        Raises:
            AlreadyExistsError: The name is taken in its workspace.
        """
        self._record = self._services.workspaces.update_project(self.id, name=name)

    def set_key(self, key: str) -> None:
        """Refused: projects have a number and a name."""
        raise refusal("set_key", "a project is identified by its number and its name")

    def list_experiments(self) -> list[Experiment]:
        """Lists its experiments, archived ones too."""
        return [Experiment(self._services, record) for record in self._experiments()]

    def _experiments(self) -> Iterator[ExperimentRecord]:
        wanted = ExperimentFilter(project_ids=(self.id,), include_archived=True)
        return self._services.experiments.list(wanted, order_by="number")


class Workspace(ArchivableObject[WorkspaceRecord]):
    """A group of projects with limits for their experiments. An archived one accepts no new experiments.

    Examples:
        >>> from resolute import client
        >>> workspace = client.create_workspace("speech")
        >>> workspace.set_quota(live_experiments=10, slots=4)
        >>> workspace.quota.slots
        4
    """

    def __repr__(self) -> str:
        return f"Workspace(id={self.id}, {self.name!r})"

    @property
    def id(self) -> int:
        """The small number that people use."""
        return self._record.id

    @property
    def name(self) -> str:
        """Its name."""
        return self._record.name

    @property
    def quota(self) -> QuotaRecord:
        """What its experiments may use together."""
        return self._record.quota

    @property
    def used(self) -> QuotaRecord:
        """What its experiments used when it was last read."""
        return self._record.used

    def _read(self) -> WorkspaceRecord:
        return self._services.workspaces.get(self.id)

    def _set_archived(self, archived: bool) -> WorkspaceRecord:
        return self._services.workspaces.archive(self.id, archived=archived)

    def set_quota(self, *, live_experiments: int, slots: int, storage_bytes: int = 0) -> None:
        """Bounds what its experiments use together; zero for no bound.

        Args:
            live_experiments: Most experiments that have not ended.
            slots: Most slots of their allocations.
            storage_bytes: Most bytes of their checkpoints.
        """
        self._record = self._services.workspaces.set_quota(
            self.id, live_experiments=live_experiments, slots=slots, storage_bytes=storage_bytes
        )

    def assign_role(self, username: str, role: UserRole) -> None:
        """Gives a user a role in this workspace, in place of the one that the user had here.

        Raises:
            NotFoundError: There is no such user.
            PermissionDeniedError: The caller is no admin of this workspace.
        """
        self._services.roles.assign(username, self.id, role)

    def remove_role(self, username: str) -> None:
        """Takes the role that a user has in this workspace away."""
        self._services.roles.remove(username, self.id)

    def list_roles(self) -> list[WorkspaceRoleRecord]:
        """Lists the roles in this workspace, by users; roles in the whole cluster are with the users."""
        return list(self._services.roles.list(workspace=self.id))

    def list_pools(self) -> Any:
        """Refused: machines are not bound to workspaces."""
        raise refusal("list_pools", NO_POOLS)

    def create_project(self, name: str, description: str | None = None) -> Project:
        """Creates a project in it.

        Raises:
            AlreadyExistsError: The name is taken here.
        """
        record = self._services.workspaces.create_project(self.id, name, description=description or "")
        return Project(self._services, record)

    def get_project(self, project_name: str) -> Project:
        """Returns a project of it.

        Raises:
            NotFoundError: There is none of this name.
        """
        return Project(self._services, self._services.workspaces.find_project(self.name, project_name))

    def list_projects(self) -> list[Project]:
        """Lists its projects by name."""
        records = self._services.workspaces.list_projects(self.id)
        return [Project(self._services, record) for record in records]

    def delete_project(self, name: str) -> None:
        """Removes a project of it.

        Raises:
            FailedPreconditionError: The project holds experiments.
        """
        self._services.workspaces.delete_project(self.get_project(name).id)
