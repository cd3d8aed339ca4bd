"""Users, their roles and tokens, workspaces and projects as `det` prints them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from resolute.cli.accounts.rbac import ROLES, Assignment, Role
from resolute.cli.accounts.workspaces import Member
from resolute.cli.determined import experiments
from resolute.cli.determined.spelling import moment, services, text_of
from resolute.cli.display.rendering import Heading, Rendering, Table
from resolute.client.schema.accounts import ProjectRecord, TokenRecord, UserRecord, UserRole, WorkspaceRecord

_ROLE_IDS = {"ClusterAdmin": 1, "WorkspaceAdmin": 2, "Viewer": 4, "Editor": 5}


def _user(user: UserRecord) -> dict[str, Any]:
    return {
        "active": user.active,
        "admin": user.role is UserRole.ADMIN,
        "agentUserGroup": None,
        "displayName": None,
        "id": user.id,
        "lastAuthAt": None,
        "modifiedAt": moment(user.create_time),
        "remote": False,
        "username": user.name,
    }


def _workspace(workspace: WorkspaceRecord) -> dict[str, Any]:
    return {
        "agentUserGroup": None,
        "archived": workspace.archived,
        "autoCreatedNamespace": None,
        "checkpointStorageConfig": None,
        "defaultAuxPool": None,
        "defaultComputePool": None,
        "errorMessage": "",
        "id": workspace.id,
        "immutable": workspace.id == 1,
        "name": workspace.name,
        "numExperiments": workspace.experiment_count,
        "numProjects": workspace.project_count,
        "pinned": False,
        "pinnedAt": None,
        "state": "WORKSPACE_STATE_UNSPECIFIED",
        "userId": workspace.owner_id,
        "username": workspace.owner,
    }


def _project(project: ProjectRecord) -> dict[str, Any]:
    return {
        **_listed(project),
        "errorMessage": "",
        "immutable": project.id == 1,
        "key": None,
        "lastExperimentStartedAt": None,
        "numRuns": None,
        "state": "WORKSPACE_STATE_UNSPECIFIED",
        "userId": project.owner_id,
        "workspaceName": project.workspace,
    }


def _listed(project: ProjectRecord) -> dict[str, Any]:
    """A project as the client writes it."""
    return {
        "archived": project.archived,
        "description": project.description,
        "id": project.id,
        "name": project.name,
        "notes": [{"contents": project.notes, "name": "notes"}] if project.notes else [],
        "numActiveExperiments": _active(project),
        "numExperiments": project.experiment_count,
        "username": project.owner,
        "workspaceId": project.workspace_id,
    }


def _active(project: ProjectRecord) -> int:
    jobs = {job.experiment_id for job in services().jobs.list()}
    return sum(experiment.id in jobs for experiment in experiments.of_project(project)) if jobs else 0


def _token(token: TokenRecord) -> dict[str, Any]:
    return {
        "createdAt": moment(token.create_time),
        "description": token.description,
        "expiry": moment(token.expire_time),
        "id": token.id,
        "revoked": token.revoked,
        "tokenType": "TOKEN_TYPE_ACCESS_TOKEN" if token.kind == "access" else "TOKEN_TYPE_USER_SESSION",
        "userId": _user_ids().get(token.username),
    }


def _user_ids() -> dict[str, int]:
    return {user.name: user.id for user in services().access.list_users()}


def _role(role: Role) -> dict[str, Any]:
    scopes = {"cluster": role.in_cluster, "workspace": role.in_workspace}
    return {"name": role.name, "permissions": [], "roleId": _ROLE_IDS[role.name], "scopeTypeMask": scopes}


def _roles(roles: Sequence[Role]) -> dict[str, Any]:
    count = len(roles)
    pagination = {"endIndex": count, "limit": count, "offset": 0, "startIndex": 0, "total": count}
    return {"pagination": pagination, "roles": [_role(role) for role in roles]}


def _of_role(assignments: Sequence[Assignment]) -> list[tuple[Role, list[str]]]:
    """Roles with the workspaces in which they are held; empty for the cluster."""
    held = [
        (role, [assignment.workspace for assignment in assignments if assignment.role == role.name])
        for role in ROLES
    ]
    return [(role, workspaces) for role, workspaces in held if workspaces]


def _permissions(assignments: Sequence[Assignment]) -> dict[str, Any]:
    numbers = _workspace_ids()
    held = _of_role(assignments)
    return {
        "assignments": [
            {
                "roleId": _ROLE_IDS[role.name],
                "scopeCluster": "" in names,
                "scopeWorkspaceIds": [numbers[name] for name in names if name],
            }
            for role, names in held
        ],
        "roles": [_role(role) for role, _ in held],
    }


def _assigned(assignments: Sequence[Assignment]) -> dict[str, Any]:
    numbers = _workspace_ids()
    return {
        "roles": [
            {
                "groupRoleAssignments": [],
                "role": _role(role),
                "userRoleAssignments": [
                    {
                        "roleAssignment": {
                            "role": _role(role),
                            "scopeCluster": not name,
                            "scopeWorkspaceId": numbers.get(name),
                        }
                    }
                    for name in names
                ],
            }
            for role, names in _of_role(assignments)
        ]
    }


def _workspace_ids() -> dict[str, int]:
    return {workspace.name: workspace.id for workspace in services().workspaces.list()}


def _members(members: Sequence[Member]) -> dict[str, Any]:
    here = [member for member in members if member.where == "workspace"]
    users = {user.name: user for user in services().access.list_users()}
    by_role = {role.role.value: role for role in ROLES if role.in_workspace}
    return {
        "assignments": [
            {
                "groupRoleAssignments": [],
                "role": _role(by_role[value]),
                "userRoleAssignments": [
                    {"roleAssignment": {"role": _role(by_role[value])}, "userId": users[assignment.user].id}
                    for assignment in here
                    if assignment.role == value
                ],
            }
            for value in dict.fromkeys(assignment.role for assignment in here)
        ],
        "groups": [],
        "usersAssignedDirectly": [_user(users[assignment.user]) for assignment in here],
    }


_USERS = (
    Heading("User Id", lambda user: user.id),
    Heading("Username", lambda user: user.name),
    Heading("Display Name", lambda _: text_of(None)),
    Heading("Admin", lambda user: user.role is UserRole.ADMIN),
    Heading("Active", lambda user: user.active),
    Heading("Remote", lambda _: False),
    *(
        Heading(name, lambda _: text_of(None))
        for name in ("Agent Uid", "Agent Gid", "Agent User", "Agent Group")
    ),
)
_WORKSPACES = (
    Heading("ID", lambda workspace: workspace.id),
    Heading("Name", lambda workspace: workspace.name),
    Heading("# Projects", lambda workspace: workspace.project_count),
    *(
        Heading(name, lambda _: None)
        for name in (
            "Agent Uid",
            "Agent Gid",
            "Agent User",
            "Agent Group",
            "Default Compute Pool",
            "Default Aux Pool",
        )
    ),
)
_PROJECTS = (
    Heading("ID", lambda project: project.id),
    Heading("Key", lambda _: None),
    Heading("Name", lambda project: project.name),
    Heading("Description", lambda project: project.description),
    Heading("# Experiments", lambda project: project.experiment_count),
    Heading("# Active Experiments", _active),
)
_MEMBERS = (
    Heading("User/Group Name", lambda member: member.user),
    Heading("User/Group", lambda _: "U"),
    Heading("Role Name", lambda member: member.role),
)
_TOKENS = (
    Heading("ID", lambda token: token["id"]),
    Heading("User ID", lambda token: token["userId"]),
    Heading("Description", lambda token: token["description"]),
    Heading("Created At", lambda token: token["createdAt"]),
    Heading("Expires At", lambda token: token["expiry"]),
    Heading("Revoked", lambda token: token["revoked"]),
    Heading("Token Type", lambda token: token["tokenType"].removeprefix("TOKEN_TYPE_")),
)

_PROJECT_LIST = Rendering(lambda found: [_listed(project) for project in found], (Table(_PROJECTS),))
_TOKEN_LIST = Rendering(
    lambda found: [_token(token) for token in found],
    (Table(_TOKENS, lambda found: [_token(token) for token in found]),),
)
RENDERINGS = {
    "user list": Rendering(lambda found: [_user(user) for user in found], (Table(_USERS),)),
    "workspace list": Rendering(
        lambda found: [_workspace(workspace) for workspace in found], (Table(_WORKSPACES),)
    ),
    "workspace create": Rendering(_workspace),
    "workspace edit": Rendering(_workspace),
    "workspace describe": Rendering(lambda found: _workspace(found["workspace"])),
    "workspace list-projects": _PROJECT_LIST,
    "workspace list-members": Rendering(_members, (Table(_MEMBERS),)),
    "project list": _PROJECT_LIST,
    "project create": Rendering(_project),
    "project edit": Rendering(_project),
    "project describe": Rendering(lambda found: _project(found["project"])),
    "rbac list-roles": Rendering(_roles),
    "rbac describe-role": Rendering(
        lambda found: {"groupRoleAssignments": [], "role": _role(found[0]), "userRoleAssignments": []}
    ),
    "rbac list-users-roles": Rendering(_assigned),
    "rbac my-permissions": Rendering(_permissions),
    "token list": _TOKEN_LIST,
    "token describe": _TOKEN_LIST,
    "token edit": Rendering(lambda token: {"tokenInfo": _token(token)}),
    "token create": Rendering(lambda facts: {"token": facts["token"], "tokenId": facts["id"]}),
}
"""By the words of the command."""
