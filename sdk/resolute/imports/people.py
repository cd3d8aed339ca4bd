"""Imports users with their own roles and those of their groups.

This cluster has no groups: their members get the groups' roles, and the report lists the members.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property

from resolute.client.schema.accounts import UserRole
from resolute.client.services import Services
from resolute.errors import FailedPreconditionError, NotFoundError
from resolute.imports.master import Master, Message
from resolute.imports.places import workspaces_of
from resolute.imports.report import Report

_ROLES: Mapping[str, UserRole] = {
    "ClusterAdmin": UserRole.ADMIN,
    "WorkspaceAdmin": UserRole.ADMIN,
    "Editor": UserRole.EDITOR,
    "EditorRestricted": UserRole.EDITOR,
    "EditorProjectRestricted": UserRole.EDITOR,
    "Viewer": UserRole.VIEWER,
}
_NARROWER = frozenset({"EditorRestricted", "EditorProjectRestricted"})
"""They come as editors, who may start tasks too: the report names who."""
_RANKS = (UserRole.MEMBER, UserRole.VIEWER, UserRole.EDITOR, UserRole.ADMIN)
_MOST_NAMED = 20
"""Members of a group that the report names."""
Assigned = dict[tuple[int, int], UserRole]
"""The highest role of a user, by the user's number there, in a workspace by its number there; 0 for all."""


class People:
    """Imports users and their roles.

    Args:
        master: The other cluster.
        services: This cluster.
        report: Counts the imported objects.
    """

    def __init__(self, master: Master, services: Services, report: Report) -> None:
        self._master = master
        self._services = services
        self._report = report

    def bring_users(self, *, roles_count: bool) -> None:
        """Creates users who are not here, without passwords.

        Args:
            roles_count: Whether the other cluster gives roles; where it does not, all users may edit.
        """
        known = {user.name for user in self._services.access.list_users()}
        cluster_roles = self._roles if roles_count else {}
        for user in self._users():
            name = str(user["username"])
            if name in known:
                self._report.add("users", known=1)
                continue
            with self._report.noting(f"user {name!r}"):
                usual = UserRole.MEMBER if roles_count else UserRole.EDITOR
                role = cluster_roles.get((int(user["id"]), 0), usual)
                if user.get("admin") and not roles_count:
                    role = UserRole.ADMIN
                elif user.get("admin") and role is not UserRole.ADMIN:
                    self._report.remark(f"user {name!r} as an admin: where roles count, that has no effect")
                # Deactivated in the same call: an import that is killed leaves no user active who was not.
                self._services.access.create_user(name, role, active=bool(user.get("active", True)))
                self._report.add("users", new=1)
                self._report.remark("passwords of users: each needs a new one, or a sign-in by OpenID")
                if user.get("displayName"):
                    self._report.remark("display names of users: users have one name")

    def bring_roles(self, workspaces: Mapping[int, int]) -> None:
        """Gives users the roles in workspaces that they do not have here.

        Args:
            workspaces: Numbers of workspaces here by their numbers there.
        """
        users = {user.name: user.id for user in self._services.access.list_users()}
        known = {(role.user, role.workspace) for role in self._services.roles.list()}
        titles = {workspace.id: workspace.name for workspace in self._services.workspaces.list()}
        for (user, workspace), role in sorted(self._roles.items(), key=lambda item: item[0]):
            name, here = self._names.get(user, ""), workspaces.get(workspace)
            if here is None or name not in users:
                continue
            if (name, titles.get(here, "")) in known:
                self._report.add("roles", known=1)
                continue
            with self._report.noting(f"role {role.value!r} of user {name!r}"):
                self._services.roles.assign(users[name], here, role)
                self._report.add("roles", new=1)

    def _users(self) -> Iterator[Message]:
        return self._master.pages("/api/v1/users", "users", sortBy="SORT_BY_USER_NAME")

    @cached_property
    def _roles(self) -> Assigned:
        """All roles, those of groups as their members'."""
        found: defaultdict[tuple[int, int], UserRole] = defaultdict(lambda: UserRole.MEMBER)
        for user in self._users():
            with self._report.noting(f"roles of user {user.get('username')!r}"):
                for role in self._roles_of(int(user["id"])):
                    for assignment in role.get("userRoleAssignments") or []:
                        self._note(found, int(user["id"]), assignment["roleAssignment"], role["role"])
        for group in _groups_of(self._master):
            with self._report.noting(f"roles of group {group.get('name')!r}"):
                self._note_group(found, group)
        return dict(found)

    def _note_group(self, found: Assigned, group: Message) -> None:
        answer = self._master.get(f"/api/v1/roles/search/by-group/{group['groupId']}")
        titles = {role["roleId"]: role for role in answer.get("roles") or []}
        for summary in answer.get("assignments") or []:
            scopes = [
                {"scopeWorkspaceId": workspace_id} for workspace_id in summary.get("scopeWorkspaceIds") or []
            ]
            scopes += [{"scopeCluster": True}] if summary.get("scopeCluster") else []
            for member in _members_of(group):
                for scope in scopes:
                    self._note(found, int(member["id"]), scope, titles.get(summary["roleId"], {}))

    def _roles_of(self, user: int) -> list[Message]:
        try:
            return self._master.get(f"/api/v1/roles/search/by-user/{user}").get("roles") or []
        except NotFoundError:
            return []

    @cached_property
    def _names(self) -> dict[int, str]:
        return {int(user["id"]): str(user["username"]) for user in self._users()}

    @cached_property
    def _workspaces(self) -> list[int]:
        return [int(workspace["id"]) for workspace in workspaces_of(self._master)]

    def _note(self, found: Assigned, user: int, scope: Message, role: Message) -> None:
        title, workspace = str(role.get("name", "")), int(scope.get("scopeWorkspaceId") or 0)
        given = _ROLES.get(title)
        if given is None:
            self._report.remark(f"role {title!r}: there is none like it; give one with `resolute rbac`")
            return
        if title in _NARROWER:
            self._report.remark(
                f"role {title!r} of user {self._names.get(user, user)!r}: there is none like it; an editor "
                "may start tasks too, which `resolute rbac` can narrow to a viewer"
            )
        wanted = {workspace: given}
        if title == "WorkspaceAdmin" and not workspace:
            # An admin of the cluster would manage its users as well.
            wanted = {0: UserRole.EDITOR, **dict.fromkeys(self._workspaces, given)}
        for number, rank in wanted.items():
            found[user, number] = max(found[user, number], rank, key=_RANKS.index)


def remark_groups(master: Master, report: Report) -> None:
    """Lists each group with its members, so that an admin can give them roles together elsewhere."""
    with report.noting("groups"):
        for group in _groups_of(master):
            names = sorted(str(user.get("username", "")) for user in _members_of(group))
            if len(names) > _MOST_NAMED:
                names = [*names[:_MOST_NAMED], f"{len(names) - _MOST_NAMED} more"]
            report.remark(
                f"group {group['name']!r} ({', '.join(names) or 'empty'}): there are no groups; members have "
                "its roles each, and a provider's groups may give roles (docs/access.md)"
            )


def _groups_of(master: Master) -> Iterator[Message]:
    """Yields the groups with their members; none of a release or an edition that has no groups."""
    try:
        found = list(master.search("/api/v1/groups/search", "groups"))
    except (NotFoundError, FailedPreconditionError):
        return
    for assignment in found:
        yield master.get(f"/api/v1/groups/{assignment['group']['groupId']}")["group"]


def _members_of(group: Message) -> list[Message]:
    """The users of a group."""
    return list(group.get("users") or [])
