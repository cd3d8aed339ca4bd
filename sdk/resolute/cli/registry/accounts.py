"""The table of the commands about users, tokens, workspaces, projects and roles."""

from __future__ import annotations

import click

from resolute.cli.registry.counterparts import COUNTERPARTS
from resolute.cli.registry.lazy import LazyCommand, LazyGroup

_COMMANDS = "resolute.cli.registry.accounts"
_USER = "resolute.cli.accounts"
_WORKSPACE = "resolute.cli.accounts.workspaces"
_PROJECT = "resolute.cli.accounts.projects"

USER_COMMANDS = (
    LazyCommand("login", "Log in as a user.", f"{_USER}.login:login"),
    LazyCommand(
        "sign-in-link", "Print a link that signs a browser in.", f"{_USER}.sign_in_link:sign_in_link"
    ),
    LazyCommand("logout", "Log out: delete the token of the login.", f"{_USER}.login:logout"),
    LazyCommand("whoami", "Print the current user.", f"{_USER}.login:whoami"),
    LazyCommand("list", "List users.", f"{_USER}.users:list_", ("ls",)),
    LazyCommand("create", "Create a user.", f"{_USER}.users:create"),
    LazyCommand("edit", "Change the name, role and state of a user.", f"{_USER}.users:edit"),
    LazyCommand("rename", "Change the name of a user.", f"{_USER}.users:rename"),
    LazyCommand("set-role", "Change the role of a user.", f"{_USER}.users:set_role"),
    LazyCommand("activate", "Reactivate a user.", f"{_USER}.users:activate"),
    LazyCommand("deactivate", "Deactivate a user, who can no longer log in.", f"{_USER}.users:deactivate"),
    LazyCommand("change-password", "Change a password.", f"{_USER}.users:change_password"),
)
"""Commands of ``resolute user``."""

TOKEN_COMMANDS = (
    LazyCommand("create", "Create a token and print it.", f"{_USER}.tokens:create"),
    LazyCommand("list", "List tokens.", f"{_USER}.tokens:list_", ("ls",)),
    LazyCommand("describe", "Show tokens.", f"{_USER}.tokens:describe"),
    LazyCommand("edit", "Change the description of a token.", f"{_USER}.tokens:edit"),
    LazyCommand("revoke", "Revoke a token before it expires.", f"{_USER}.tokens:revoke"),
)
"""Commands of ``resolute token``."""

SECRET_COMMANDS = (
    LazyCommand("set", "Set a secret from standard input.", f"{_USER}.secrets:set_"),
    LazyCommand("list", "List secrets, without their values.", f"{_USER}.secrets:list_", ("ls",)),
    LazyCommand("delete", "Delete a secret.", f"{_USER}.secrets:delete"),
)
"""Commands of ``resolute secret``."""

WORKSPACE_COMMANDS = (
    LazyCommand("list", "List workspaces and the resources they use.", f"{_WORKSPACE}:list_", ("ls",)),
    LazyCommand("create", "Create a workspace.", f"{_WORKSPACE}:create"),
    LazyCommand("describe", "Show a workspace.", f"{_WORKSPACE}:describe"),
    LazyCommand("list-projects", "List the projects of a workspace.", f"{_WORKSPACE}:list_projects"),
    LazyCommand("list-members", "List the users with a role in a workspace.", f"{_WORKSPACE}:list_members"),
    LazyCommand("edit", "Change the name of a workspace.", f"{_WORKSPACE}:edit"),
    LazyCommand("set-quota", "Set the quotas of a workspace.", f"{_WORKSPACE}:set_quota"),
    LazyCommand("archive", "Archive a workspace: it accepts no more experiments.", f"{_WORKSPACE}:archive"),
    LazyCommand(
        "unarchive", "Unarchive a workspace: it accepts experiments again.", f"{_WORKSPACE}:unarchive"
    ),
    LazyCommand("delete", "Delete an empty workspace.", f"{_WORKSPACE}:delete"),
    LazyCommand("role", "Give users roles in a workspace.", f"{_COMMANDS}:workspace_role"),
)
"""Commands of ``resolute workspace``."""

WORKSPACE_ROLE_COMMANDS = (
    LazyCommand("assign", "Give a user a role in a workspace.", f"{_USER}.workspace_roles:assign"),
    LazyCommand("remove", "Take a user's role in a workspace away.", f"{_USER}.workspace_roles:remove"),
    LazyCommand("list", "List roles in workspaces.", f"{_USER}.workspace_roles:list_", ("ls",)),
)
"""Commands of ``resolute workspace role``."""

RBAC_COMMANDS = (
    LazyCommand("assign-role", "Give a user a role.", f"{_USER}.rbac:assign_role"),
    LazyCommand("unassign-role", "Take a role from a user.", f"{_USER}.rbac:unassign_role"),
    LazyCommand("list-roles", "List the roles that there are.", f"{_USER}.rbac:list_roles"),
    LazyCommand("describe-role", "Show what a role allows.", f"{_USER}.rbac:describe_role"),
    LazyCommand("list-users-roles", "List the roles of a user.", f"{_USER}.rbac:list_users_roles"),
    LazyCommand("my-permissions", "List your own roles.", f"{_USER}.rbac:my_permissions"),
)
"""Commands of ``resolute rbac``."""

PROJECT_COMMANDS = (
    LazyCommand("list", "List the projects of a workspace.", f"{_PROJECT}:list_", ("ls",)),
    LazyCommand("create", "Create a project.", f"{_PROJECT}:create"),
    LazyCommand("describe", "Show a project.", f"{_PROJECT}:describe"),
    LazyCommand("list-experiments", "List the experiments of a project.", f"{_PROJECT}:list_experiments"),
    LazyCommand("edit", "Change the name and the description of a project.", f"{_PROJECT}:edit"),
    LazyCommand("set", "Change the description and the notes of a project.", f"{_PROJECT}:set_"),
    LazyCommand("archive", "Archive a project: it accepts no more experiments.", f"{_PROJECT}:archive"),
    LazyCommand("unarchive", "Unarchive a project: it accepts experiments again.", f"{_PROJECT}:unarchive"),
    LazyCommand("delete", "Delete an empty project.", f"{_PROJECT}:delete"),
)
"""Commands of ``resolute project``."""


@click.group(cls=LazyGroup, entries=WORKSPACE_COMMANDS, counterparts=COUNTERPARTS["workspace"])
def workspace() -> None:
    """Manage workspaces, which contain projects and limit the resources of their experiments."""


@click.group(cls=LazyGroup, entries=PROJECT_COMMANDS)
def project() -> None:
    """Manage projects, which contain the experiments of a workspace."""


@click.group(cls=LazyGroup, entries=USER_COMMANDS, counterparts=COUNTERPARTS["user"])
def user() -> None:
    """Manage users, log in and log out."""


@click.group(cls=LazyGroup, entries=TOKEN_COMMANDS, counterparts=COUNTERPARTS["token"])
def token() -> None:
    """Manage access tokens for programs."""


@click.group(cls=LazyGroup, entries=SECRET_COMMANDS)
def secret() -> None:
    """Manage secrets for scripts: of yours, and of workspaces."""


@click.group(name="role", cls=LazyGroup, entries=WORKSPACE_ROLE_COMMANDS)
def workspace_role() -> None:
    """Give users roles in a workspace: viewer, editor or admin."""


@click.group(cls=LazyGroup, entries=RBAC_COMMANDS, counterparts=COUNTERPARTS["rbac"])
def rbac() -> None:
    """Give users roles by their documented names, as `workspace role` and `user set-role` do."""
