"""``resolute project list|create|describe|set|archive|unarchive|delete``."""

from __future__ import annotations

import click

from resolute.cli.display.output import Column, Format, format_option, print_fields, print_items
from resolute.cli.options.settings import Settings
from resolute.client.schema.accounts import ProjectRecord

_COLUMNS: tuple[Column[ProjectRecord], ...] = (
    Column("ID", lambda project: project.id, right=True),
    Column("Name", lambda project: project.name),
    Column("Description", lambda project: project.description),
    Column("Owner", lambda project: project.owner),
    Column("Experiments", lambda project: project.experiment_count, right=True),
    Column("Archived", lambda project: project.archived),
)
_WORKSPACE = click.argument("workspace")
_NAME = click.argument("name")


@click.command(name="list")
@_WORKSPACE
@format_option
@click.pass_obj
def list_(settings: Settings, workspace: str, output: Format) -> None:
    """List the projects of WORKSPACE."""
    print_items(settings.services().workspaces.list_projects(workspace), _COLUMNS, output=output)


@click.command()
@_WORKSPACE
@_NAME
@click.option("--description", default="", help="Description.")
@click.pass_obj
def create(settings: Settings, workspace: str, name: str, description: str) -> None:
    """Create the project NAME in WORKSPACE."""
    project = settings.services().workspaces.create_project(workspace, name, description=description)
    click.echo(f"project {workspace}/{project.name} is created with number {project.id}")


@click.command()
@_WORKSPACE
@_NAME
@click.pass_obj
def describe(settings: Settings, workspace: str, name: str) -> None:
    """Show the project NAME in WORKSPACE."""
    project = settings.services().workspaces.find_project(workspace, name)
    facts = [(column.name, column.value(project)) for column in _COLUMNS]
    print_fields([*facts, ("Created", project.create_time), ("Notes", project.notes)])


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
        click.confirm(f"Remove project {workspace}/{name}?", abort=True, err=True)
    calls = settings.services().workspaces
    calls.delete_project(calls.find_project(workspace, name).id)
    click.echo(f"project {workspace}/{name} is removed")
