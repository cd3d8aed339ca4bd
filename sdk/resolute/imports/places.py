"""Imports workspaces and projects, and the templates and policies for configs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import yaml

from resolute.client.schema.records import ConfigPoliciesRecord
from resolute.client.services import Services
from resolute.errors import NotFoundError
from resolute.imports.master import Master, Message
from resolute.imports.report import Report

_MOST_NOTES = 100_000
"""Characters of a project's notes."""
_NO_POLICIES = ConfigPoliciesRecord(invariant_config={}, max_slots=None, priority_limit=None)


@dataclass
class Places:
    """The workspaces and projects of this cluster, by their numbers on the other cluster."""

    workspaces: dict[int, int] = field(default_factory=dict)
    """Numbers of workspaces."""
    projects: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Names of the workspace and the project."""


def bring_places(master: Master, services: Services, report: Report) -> Places:
    """Creates workspaces and projects that are not here; those of the same name are taken as the same.

    One that is refused is in the report, and so are its experiments then: elsewhere others could read them.
    """
    places = Places()
    here = {existing.name: existing for existing in services.workspaces.list()}
    users = {user.name: user.id for user in services.access.list_users()}
    for old in workspaces_of(master):
        name = str(old["name"])
        with report.noting(f"workspace {name!r}"):
            workspace = here.get(name) or services.workspaces.create(name, owner=_owner(old, users))
            report.add("workspaces", **({"known": 1} if name in here else {"new": 1}))
            places.workspaces[int(old["id"])] = workspace.id
            _remark_workspace(old, report)
            known = {
                listed_project.name for listed_project in services.workspaces.list_projects(workspace.id)
            }
            for project in projects_of(master, old):
                title = str(project["name"])
                places.projects[int(project["id"])] = (name, title)
                if title in known:
                    report.add("projects", known=1)
                    continue
                with report.noting(f"project '{name}/{title}'"):
                    _create_project(services, workspace.id, project, report, owner=_owner(project, users))
                    report.add("projects", new=1)
    return places


def archive_places(master: Master, services: Services, places: Places) -> None:
    """Archives workspaces and projects that are archived there, once nothing comes into them any more."""
    for old in workspaces_of(master):
        number = places.workspaces.get(int(old["id"]))
        if number is None:  # refused, or created there since the import began
            continue
        archived = {
            str(listed_project["name"])
            for listed_project in projects_of(master, old)
            if listed_project.get("archived")
        }
        for project in services.workspaces.list_projects(number):
            if project.name in archived and not project.archived:
                services.workspaces.update_project(project.id, archived=True)
        if old.get("archived") and not services.workspaces.get(number).archived:
            services.workspaces.archive(number, archived=True)


def bring_templates(master: Master, services: Services, report: Report) -> None:
    """Sets templates whose names are not here."""
    known = {template.name for template in services.cluster.list_templates()}
    for old in templates_of(master):
        name = str(old["name"])
        if name in known:
            report.add("templates", known=1)
            continue
        with report.noting(f"template {name!r}"):
            services.cluster.set_template(name, yaml.safe_dump(dict(old.get("config") or {})))
            report.add("templates", new=1)
            if int(old.get("workspaceId") or 1) != 1:
                report.remark("workspaces of templates: templates belong to the whole cluster")


def bring_policies(master: Master, services: Services, report: Report, places: Places) -> None:
    """Sets the config policies of experiments where none are set here."""
    wanted: dict[int | None, str] = {None: "/api/v1/config-policies/global/EXPERIMENT"}
    for old, here in places.workspaces.items():
        wanted[here] = f"/api/v1/config-policies/workspaces/{old}/EXPERIMENT"
    for workspace, path in wanted.items():
        try:
            policies = master.get(path).get("configPolicies")
        except NotFoundError:
            if workspace is None:  # a release without policies
                return
            continue
        if not policies:
            continue
        present = services.config_policies.get(workspace=workspace)
        if present != _NO_POLICIES:
            report.add("config policies", known=1)
            continue
        with report.noting(f"config policies of {path.rsplit('/', 1)[0]}"):
            services.config_policies.set(yaml.safe_dump(policies), workspace=workspace)
            report.add("config policies", new=1)


def workspaces_of(master: Master) -> Iterator[Message]:
    """Yields the workspaces, oldest first."""
    yield from master.pages("/api/v1/workspaces", "workspaces", sortBy="SORT_BY_ID", orderBy="ORDER_BY_ASC")


def projects_of(master: Master, workspace: Message) -> Iterator[Message]:
    """Yields the projects of a workspace, oldest first."""
    path = f"/api/v1/workspaces/{workspace['id']}/projects"
    yield from master.pages(path, "projects", sortBy="SORT_BY_ID", orderBy="ORDER_BY_ASC")


def templates_of(master: Master) -> Iterator[Message]:
    """Yields the templates."""
    yield from master.pages("/api/v1/templates", "templates", sortBy="SORT_BY_NAME")


def _owner(old: Message, users: Mapping[str, int]) -> int | None:
    """The user here whose a workspace or a project was there; None where there is none."""
    return users.get(str(old.get("username") or ""))


def _create_project(
    services: Services, workspace: int, project: Message, report: Report, *, owner: int | None
) -> None:
    description = str(project.get("description") or "")
    notes = "\n".join(
        f"# {note.get('name') or 'Notes'}\n\n{note.get('contents') or ''}\n"
        for note in project.get("notes") or []
    )
    if len(notes) > _MOST_NOTES:
        report.remark(f"notes of projects behind {_MOST_NOTES} characters")
    services.workspaces.create_project(
        workspace, str(project["name"]), description=description, notes=notes[:_MOST_NOTES], owner=owner
    )


def _remark_workspace(workspace: Message, report: Report) -> None:
    if workspace.get("checkpointStorageConfig"):
        report.remark("checkpoint storages of workspaces: name them in a template, or in the configs")
    if workspace.get("agentUserGroup"):
        report.remark("agent users of workspaces: trials run as the user who started the cluster")
