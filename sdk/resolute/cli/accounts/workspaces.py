"""``resolute workspace list|create|describe|edit|archive|unarchive|set-quota|delete|list-projects``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from resolute.cli.accounts.projects import COLUMNS as PROJECT_COLUMNS
from resolute.cli.accounts.projects import SORT_FIELDS as PROJECT_SORT_FIELDS
from resolute.cli.display.output import (
    Column,
    Format,
    format_option,
    json_option,
    print_fields,
    print_items,
    print_json,
    yaml_option,
)
from resolute.cli.options import completions
from resolute.cli.options.confirmation import confirm
from resolute.cli.options.pagination import Page, page_options
from resolute.cli.options.settings import Settings
from resolute.cli.options.sorting import sort_options
from resolute.client.schema.accounts import UserRole, WorkspaceRecord
from resolute.contracts.sizes import human_size

_NAME = click.argument("name", shell_complete=completions.workspaces)
_MIB = 1024 * 1024


def _of(used: int, bound: int) -> str:
    return f"{used} of {bound}" if bound else str(used)


_COLUMNS: tuple[Column[WorkspaceRecord], ...] = (
    Column("ID", lambda workspace: workspace.id, right=True),
    Column("Name", lambda workspace: workspace.name),
    Column("Owner", lambda workspace: workspace.owner),
    Column("Projects", lambda workspace: workspace.project_count, right=True),
    Column("Experiments", lambda workspace: workspace.experiment_count, right=True),
    Column("Live", lambda each: _of(each.used.live_experiments, each.quota.live_experiments), right=True),
    Column("Slots", lambda each: _of(each.used.slots, each.quota.slots), right=True),
    Column("Archived", lambda workspace: workspace.archived),
)


@dataclass(frozen=True)
class Member:
    """A user with a role in a workspace: a role there, or one in the whole cluster."""

    user: str
    role: str
    where: str


_MEMBER_COLUMNS: tuple[Column[Member], ...] = (
    Column("User", lambda member: member.user),
    Column("Role", lambda member: member.role),
    Column("Where", lambda member: member.where),
)


@click.command(name="list")
@sort_options({"id": lambda each: each.id, "name": lambda each: each.name})
@page_options(limit=None)
@format_option
@click.pass_obj
def list_(settings: Settings, sort: Callable[..., Any], page: Page, output: Format) -> None:
    """List workspaces and the resources they use."""
    print_items(page.of(sort(settings.services().workspaces.list())), _COLUMNS, output=output)


@click.command(name="list-projects")
@_NAME
@sort_options(PROJECT_SORT_FIELDS)
@page_options(limit=None)
@format_option
@click.pass_obj
def list_projects(
    settings: Settings, name: str, sort: Callable[..., Any], page: Page, output: Format
) -> None:
    """List the projects of the workspace NAME."""
    projects = sort(settings.services().workspaces.list_projects(name))
    print_items(page.of(projects), PROJECT_COLUMNS, output=output)


@click.command(name="list-members")
@_NAME
@format_option
@yaml_option
@click.pass_obj
def list_members(settings: Settings, name: str, output: Format) -> None:
    """List the users with a role in the workspace NAME, by a role there or in the whole cluster."""
    services = settings.services()
    everywhere = [
        Member(user.name, user.role.value, "cluster")
        for user in services.access.list_users()
        if user.active and user.role is not UserRole.MEMBER
    ]
    here = [Member(role.user, role.role.value, "workspace") for role in services.roles.list(workspace=name)]
    print_items([*here, *everywhere], _MEMBER_COLUMNS, output=output)


@click.command()
@_NAME
@json_option
@click.pass_obj
def create(settings: Settings, name: str, as_json: bool) -> None:
    """Create the workspace NAME."""
    workspace = settings.services().workspaces.create(name)
    if as_json:
        print_json(workspace)
    else:
        click.echo(f"workspace {workspace.name} is created with number {workspace.id}")


@click.command()
@_NAME
@click.option("--name", "new_name", required=True, metavar="NEW_NAME", help="New name.")
@json_option
@click.pass_obj
def edit(settings: Settings, name: str, new_name: str, as_json: bool) -> None:
    """Change the name of the workspace NAME; `workspace set-quota` changes its quotas."""
    workspace = settings.services().workspaces.rename(name, new_name)
    if as_json:
        print_json(workspace)
    else:
        click.echo(f"workspace {name} is called {workspace.name}")


@click.command()
@_NAME
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def describe(settings: Settings, name: str, as_json: bool) -> None:
    """Show the workspace NAME with its projects."""
    services = settings.services()
    workspace = services.workspaces.get(name)
    projects = list(services.workspaces.list_projects(name))
    if as_json:
        print_json({"workspace": workspace, "projects": projects})
        return
    facts = [(column.name, column.value(workspace)) for column in _COLUMNS]
    names = ", ".join(project.name for project in projects)
    stored, room = human_size(workspace.used.storage_bytes), workspace.quota.storage_bytes
    facts.append(("Checkpoints", f"{stored} of {human_size(room)}" if room else stored))
    print_fields([*facts, ("Created", workspace.create_time), ("Projects", names)])


@click.command()
@_NAME
@click.pass_obj
def archive(settings: Settings, name: str) -> None:
    """Archive the workspace NAME: it accepts no more experiments."""
    settings.services().workspaces.archive(name, archived=True)
    click.echo(f"workspace {name} is archived")


@click.command()
@_NAME
@click.pass_obj
def unarchive(settings: Settings, name: str) -> None:
    """Unarchive the workspace NAME: it accepts experiments again."""
    settings.services().workspaces.archive(name, archived=False)
    click.echo(f"workspace {name} is open")


@click.command()
@_NAME
@click.option(
    "--experiments",
    type=click.IntRange(0),
    help="Maximum number of experiments that have not ended; 0 for no limit.",
)
@click.option(
    "--slots", type=click.IntRange(0), help="Maximum number of slots in use at the same time; 0 for no limit."
)
@click.option(
    "--storage",
    type=click.IntRange(0),
    metavar="MIB",
    help="Maximum size of checkpoints in MiB; 0 for no limit.",
)
@click.pass_obj
def set_quota(
    settings: Settings, name: str, experiments: int | None, slots: int | None, storage: int | None
) -> None:
    """Set the quotas that the experiments of the workspace NAME share; other quotas are unchanged."""
    if experiments is None and slots is None and storage is None:
        raise click.UsageError("Name a limit: --experiments, --slots, --storage, or several.")
    calls = settings.services().workspaces
    now = calls.get(name).quota
    changed = calls.set_quota(
        name,
        live_experiments=now.live_experiments if experiments is None else experiments,
        slots=now.slots if slots is None else slots,
        storage_bytes=now.storage_bytes if storage is None else storage * _MIB,
    )
    shown = [str(bound or "any") for bound in (changed.quota.live_experiments, changed.quota.slots)]
    room = human_size(changed.quota.storage_bytes) if changed.quota.storage_bytes else "any storage"
    click.echo(f"workspace {name} may use {shown[0]} live experiments, {shown[1]} slots, {room}")


@click.command()
@_NAME
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_obj
def delete(settings: Settings, name: str, yes: bool) -> None:
    """Delete the workspace NAME, which must not contain experiments."""
    if not yes:
        confirm(f"Remove workspace {name} with its projects?")
    settings.services().workspaces.delete(name)
    click.echo(f"workspace {name} is removed")
