"""``resolute project list|create|describe|list-experiments|edit|set|archive|unarchive|delete``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import click

from resolute.cli.display.output import (
    Column,
    Format,
    format_option,
    json_option,
    print_fields,
    print_items,
    print_json,
)
from resolute.cli.experiment.views.list import COLUMNS as EXPERIMENT_COLUMNS
from resolute.cli.options import completions
from resolute.cli.options.confirmation import confirm
from resolute.cli.options.pagination import Page, page_options
from resolute.cli.options.settings import Settings
from resolute.cli.options.sorting import sort_options
from resolute.client.remote.experiments import ExperimentFilter
from resolute.client.schema.accounts import ProjectRecord
from resolute.client.schema.records import ExperimentRecord
from resolute.client.services import Services

COLUMNS: tuple[Column[ProjectRecord], ...] = (
    Column("ID", lambda project: project.id, right=True),
    Column("Name", lambda project: project.name),
    Column("Description", lambda project: project.description),
    Column("Owner", lambda project: project.owner),
    Column("Experiments", lambda project: project.experiment_count, right=True),
    Column("Archived", lambda project: project.archived),
)
"""What lists of projects show."""
SORT_FIELDS: dict[str, Callable[[ProjectRecord], Any]] = {
    "id": lambda project: project.id,
    "name": lambda project: project.name,
    "description": lambda project: project.description,
}
"""By what lists of projects can be sorted."""
_EXPERIMENT_SORT_FIELDS: dict[str, Callable[[ExperimentRecord], Any]] = {
    "id": lambda one: one.id,
    "name": lambda one: one.name,
    "owner": lambda one: one.owner,
    "progress": lambda one: one.progress,
    "state": lambda one: one.state.name,
    "start_time": lambda one: one.create_time,
    "end_time": lambda one: one.end_time,
}
_WORKSPACE = click.argument("workspace", shell_complete=completions.workspaces)
_NAME = click.argument("name", shell_complete=completions.projects)


@click.command(name="list")
@_WORKSPACE
@sort_options(SORT_FIELDS)
@page_options(limit=None)
@format_option
@click.pass_obj
def list_(settings: Settings, workspace: str, sort: Callable[..., Any], page: Page, output: Format) -> None:
    """List the projects of WORKSPACE."""
    print_items(
        page.of(sort(settings.services().workspaces.list_projects(workspace))), COLUMNS, output=output
    )


@click.command()
@_WORKSPACE
@_NAME
@click.option("--description", default="", help="Description.")
@json_option
@click.pass_obj
def create(settings: Settings, workspace: str, name: str, description: str, as_json: bool) -> None:
    """Create the project NAME in WORKSPACE."""
    project = settings.services().workspaces.create_project(workspace, name, description=description)
    if as_json:
        print_json(project)
    else:
        click.echo(f"project {workspace}/{project.name} is created with number {project.id}")


@click.command()
@_WORKSPACE
@_NAME
@click.option("-a", "--all", "everything", is_flag=True, help="Include archived experiments.")
@json_option
@click.pass_obj
def describe(settings: Settings, workspace: str, name: str, everything: bool, as_json: bool) -> None:
    """Show the project NAME in WORKSPACE with its experiments."""
    services = settings.services()
    project = services.workspaces.find_project(workspace, name)
    experiments = list(_experiments(services, project, everything=everything))
    if as_json:
        print_json({"project": project, "experiments": experiments})
        return
    facts = [(column.name, column.value(project)) for column in COLUMNS]
    print_fields([*facts, ("Created", project.create_time), ("Notes", project.notes)])
    if experiments:
        click.echo()
        print_items(experiments, EXPERIMENT_COLUMNS, output=Format.TABLE)


@click.command(name="list-experiments")
@_WORKSPACE
@_NAME
@click.option("-a", "--all", "everything", is_flag=True, help="Include archived experiments.")
@sort_options(_EXPERIMENT_SORT_FIELDS)
@page_options(limit=200)
@format_option
@click.pass_obj
def list_experiments(
    settings: Settings,
    workspace: str,
    name: str,
    everything: bool,
    sort: Callable[..., Any],
    page: Page,
    output: Format,
) -> None:
    """List the experiments of the project NAME in WORKSPACE, newest first."""
    services = settings.services()
    project = services.workspaces.find_project(workspace, name)
    experiments = sort(_experiments(services, project, everything=everything))
    print_items(page.of(experiments), EXPERIMENT_COLUMNS, output=output)


def _experiments(
    services: Services, project: ProjectRecord, *, everything: bool
) -> Iterator[ExperimentRecord]:
    return services.experiments.list(ExperimentFilter(project_ids=(project.id,), include_archived=everything))


@click.command()
@_WORKSPACE
@_NAME
@click.option("--new_name", "--new-name", "new_name", help="New name.")
@click.option("--description", help="Description.")
@json_option
@click.pass_obj
def edit(
    settings: Settings,
    workspace: str,
    name: str,
    new_name: str | None,
    description: str | None,
    as_json: bool,
) -> None:
    """Change the name and the description of the project NAME in WORKSPACE."""
    if new_name is None and description is None:
        raise click.UsageError("Nothing to change; give --new-name or --description.")
    calls = settings.services().workspaces
    number = calls.find_project(workspace, name).id
    project = calls.update_project(number, name=new_name, description=description)
    if as_json:
        print_json(project)
    else:
        click.echo(f"project {workspace}/{project.name} is changed")


@click.command(name="set")
@_WORKSPACE
@_NAME
@click.option("--description", help="Description.")
@click.option("--notes", help="Notes.")
@click.pass_obj
def set_(settings: Settings, workspace: str, name: str, description: str | None, notes: str | None) -> None:
    """Change the description and the notes of the project NAME in WORKSPACE."""
    calls = settings.services().workspaces
    calls.update_project(calls.find_project(workspace, name).id, description=description, notes=notes)
    click.echo(f"project {workspace}/{name} is changed")


@click.command()
@_WORKSPACE
@_NAME
@click.pass_obj
def archive(settings: Settings, workspace: str, name: str) -> None:
    """Archive the project NAME in WORKSPACE: it accepts no more experiments."""
    calls = settings.services().workspaces
    calls.update_project(calls.find_project(workspace, name).id, archived=True)
    click.echo(f"project {workspace}/{name} is archived")


@click.command()
@_WORKSPACE
@_NAME
@click.pass_obj
def unarchive(settings: Settings, workspace: str, name: str) -> None:
    """Unarchive the project NAME in WORKSPACE: it accepts experiments again."""
    calls = settings.services().workspaces
    calls.update_project(calls.find_project(workspace, name).id, archived=False)
    click.echo(f"project {workspace}/{name} is open")


@click.command()
@_WORKSPACE
@_NAME
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_obj
def delete(settings: Settings, workspace: str, name: str, yes: bool) -> None:
    """Delete the project NAME in WORKSPACE, which must not contain experiments."""
    if not yes:
        confirm(f"Remove project {workspace}/{name}?")
    calls = settings.services().workspaces
    calls.delete_project(calls.find_project(workspace, name).id)
    click.echo(f"project {workspace}/{name} is removed")
