"""``resolute rbac``: roles, with the names and options of Determined's command line."""

from __future__ import annotations

from dataclasses import dataclass

import click

from resolute.cli.display.output import Column, Format, format_option, print_items
from resolute.cli.options.pagination import Page, page_options
from resolute.cli.options.settings import Settings
from resolute.client.schema.accounts import UserRole
from resolute.client.services import Services


@dataclass(frozen=True)
class Role:
    """A role by its documented name."""

    name: str
    role: UserRole
    in_cluster: bool
    in_workspace: bool
    text: str


ROLES = (
    Role(
        "ClusterAdmin",
        UserRole.ADMIN,
        True,
        False,
        "users, quotas and the audit log; all of a WorkspaceAdmin",
    ),
    Role(
        "WorkspaceAdmin",
        UserRole.ADMIN,
        False,
        True,
        "roles in the workspace, its deletion; all of an Editor",
    ),
    Role(
        "Editor", UserRole.EDITOR, True, True, "experiments, projects, checkpoints, models; all of a Viewer"
    ),
    Role("Viewer", UserRole.VIEWER, True, True, "read everything"),
)
_BY_NAME = {role.name.lower(): role for role in ROLES}


@dataclass(frozen=True)
class Assignment:
    """A role that a user has."""

    role: str
    workspace: str


_ROLE_COLUMNS: tuple[Column[Role], ...] = (
    Column("Role", lambda role: role.name),
    Column("Cluster", lambda role: role.in_cluster),
    Column("Workspace", lambda role: role.in_workspace),
    Column("Allows", lambda role: role.text),
)
_ASSIGNMENT_COLUMNS: tuple[Column[Assignment], ...] = (
    Column("Role", lambda one: one.role),
    Column("Workspace", lambda one: one.workspace or "(all)"),
)
_NAME = click.argument("role_name", metavar="ROLE")
_WORKSPACE = click.option(
    "-w", "--workspace-name", default="", metavar="NAME", help="In this workspace; without it, in all."
)
_USER = click.option("-u", "--username-to-assign", "user", default="", metavar="NAME", help="The user.")


@click.command()
@_NAME
@_WORKSPACE
@_USER
@click.pass_obj
def assign_role(settings: Settings, role_name: str, workspace_name: str, user: str) -> None:
    """Give a user the role ROLE in a workspace, or in the cluster and so in all workspaces."""
    role = _role(role_name, workspace_name)
    _check_user(user)
    services = settings.services()
    if workspace_name:
        services.roles.assign(user, workspace_name, role.role)
    else:
        services.access.update_user(user, role=role.role)
    click.echo(f"user {user} is now {role.name} in {_where(workspace_name)}")


@click.command()
@_NAME
@_WORKSPACE
@_USER
@click.pass_obj
def unassign_role(settings: Settings, role_name: str, workspace_name: str, user: str) -> None:
    """Take the role ROLE from a user, who has no other one in its place then."""
    role = _role(role_name, workspace_name)
    _check_user(user)
    services = settings.services()
    if Assignment(role.name, workspace_name) not in _assignments(services, user):
        raise click.ClickException(f"user {user} is not {role.name} in {_where(workspace_name)}")
    if workspace_name:
        services.roles.remove(user, workspace_name)
    else:
        services.access.update_user(user, role=UserRole.MEMBER)
    click.echo(f"user {user} is no longer {role.name} in {_where(workspace_name)}")


@click.command()
@click.option(
    "--exclude-global-roles", is_flag=True, help="Only roles that can be given in a single workspace."
)
@page_options(limit=None)
@format_option
def list_roles(exclude_global_roles: bool, page: Page, output: Format) -> None:
    """List the roles that there are."""
    roles = [role for role in ROLES if role.in_workspace or not exclude_global_roles]
    print_items(page.of(roles), _ROLE_COLUMNS, output=output)


@click.command()
@_NAME
@format_option
def describe_role(role_name: str, output: Format) -> None:
    """Show what the role ROLE allows."""
    print_items([_named(role_name)], _ROLE_COLUMNS, output=output)


@click.command()
@click.argument("username")
@format_option
@click.pass_obj
def list_users_roles(settings: Settings, username: str, output: Format) -> None:
    """List the roles of the user USERNAME."""
    print_items(_assignments(settings.services(), username), _ASSIGNMENT_COLUMNS, output=output)


@click.command()
@format_option
@click.pass_obj
def my_permissions(settings: Settings, output: Format) -> None:
    """List your own roles."""
    services = settings.services()
    print_items(_assignments(services, services.cluster.current_user()), _ASSIGNMENT_COLUMNS, output=output)


def _assignments(services: Services, user: str) -> list[Assignment]:
    account = next(services.access.list_users(names=[user]), None)
    if account is None:
        raise click.ClickException(f"user {user!r} does not exist; `resolute user list` lists all users")
    in_cluster = [
        Assignment(role.name, "") for role in ROLES if role.in_cluster and role.role is account.role
    ]
    in_workspaces = [
        Assignment(role.name, assignment.workspace)
        for assignment in services.roles.list(user=account.id)
        for role in ROLES
        if role.in_workspace and role.role is assignment.role
    ]
    return in_cluster + in_workspaces


def _role(name: str, workspace: str) -> Role:
    role = _named(name)
    if workspace and not role.in_workspace:
        raise click.UsageError(f"{role.name} is a role in the cluster; leave --workspace-name out.")
    if not workspace and not role.in_cluster:
        raise click.UsageError(f"{role.name} is a role in a workspace; name one with --workspace-name.")
    return role


def _named(name: str) -> Role:
    role = _BY_NAME.get(name.lower())
    if role is None:
        names = ", ".join(role.name for role in ROLES)
        raise click.UsageError(f"There is no role {name!r}; the roles are {names}.")
    return role


def _check_user(user: str) -> None:
    if not user:
        raise click.UsageError("Name the user with --username-to-assign.")


def _where(workspace: str) -> str:
    return f"workspace {workspace}" if workspace else "the cluster"
