"""``resolute workspace role assign|remove|list``."""

from __future__ import annotations

import click

from resolute.cli.display.output import Column, Format, format_option, print_items
from resolute.cli.options import completions
from resolute.cli.options.settings import Settings
from resolute.client.schema.accounts import UserRole, WorkspaceRoleRecord

_WORKSPACE = click.argument("workspace", shell_complete=completions.workspaces)
_USER = click.argument("user", shell_complete=completions.users)
_ROLE = click.Choice([role.value for role in (UserRole.VIEWER, UserRole.EDITOR, UserRole.ADMIN)])
_COLUMNS: tuple[Column[WorkspaceRoleRecord], ...] = (
    Column("User", lambda role: role.user),
    Column("Workspace", lambda role: role.workspace),
    Column("Role", lambda role: role.role),
    Column("Since", lambda role: role.update_time),
)


@click.command()
@_WORKSPACE
@_USER
@click.argument("role", type=_ROLE)
@click.pass_obj
def assign(settings: Settings, workspace: str, user: str, role: str) -> None:
    """Give USER the role ROLE in WORKSPACE, in place of the one that the user has there."""
    given = settings.services().roles.assign(user, workspace, UserRole(role))
    click.echo(f"user {given.user} is now {given.role.value} in workspace {given.workspace}")


@click.command()
@_WORKSPACE
@_USER
@click.pass_obj
def remove(settings: Settings, workspace: str, user: str) -> None:
    """Take the role that USER has in WORKSPACE away; a role in the cluster still counts there."""
    settings.services().roles.remove(user, workspace)
    click.echo(f"user {user} has no role of its own in workspace {workspace}")


@click.command(name="list")
@click.argument("workspace", default="", shell_complete=completions.workspaces)
@click.option("--user", default="", metavar="NAME", help="Only roles of this user.")
@format_option
@click.pass_obj
def list_(settings: Settings, workspace: str, user: str, output: Format) -> None:
    """List roles in WORKSPACE, or in all workspaces. `resolute user list` shows roles in the cluster."""
    roles = settings.services().roles.list(user=user or None, workspace=workspace or None)
    print_items(roles, _COLUMNS, output=output)
