"""Roles of users in workspaces over the wire, on both databases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.services.in_process import Running, serving

from resolute.api.experiments.v1 import (
    access_service_pb2,
    roles_service_pb2,
    user_pb2,
    workspaces_service_pb2,
)
from resolute.api.experiments.v1.access_service_pb2_grpc import AccessServiceStub
from resolute.api.experiments.v1.roles_service_pb2_grpc import RolesServiceStub
from resolute.api.experiments.v1.workspaces_service_pb2_grpc import WorkspacesServiceStub
from resolute.contracts.values import to_mapping
from resolute.errors import InvalidArgumentError, NotFoundError, PermissionDeniedError
from resolute_experiments.blueprint import BLUEPRINT
from resolute_serving.auth.signing_keys import load_or_create_key
from resolute_serving.context import Role, User

VIEWER, EDITOR, ADMIN = user_pb2.USER_ROLE_VIEWER, user_pb2.USER_ROLE_EDITOR, user_pb2.USER_ROLE_ADMIN
MEMBER = user_pb2.USER_ROLE_MEMBER


@dataclass(frozen=True)
class Calls:
    """What one user calls."""

    access: Any
    places: Any
    stub: Any

    async def create_user(self, name: str, role: Role) -> User:
        """Creates a user."""
        number = user_pb2.UserRole.Value(f"USER_ROLE_{role.name}")
        request = access_service_pb2.CreateUserRequest(name=name, role=number)
        return User(name, role, (await self.access.CreateUser(request)).user.user_id)

    async def create_workspace(self, name: str) -> int:
        """Creates a workspace; returns its id."""
        request = workspaces_service_pb2.CreateWorkspaceRequest(name=name)
        number: int = (await self.places.CreateWorkspace(request)).workspace.workspace_id
        return number

    async def assign(self, user: User, workspace_id: int, role: user_pb2.UserRole.ValueType) -> None:
        """Gives a role."""
        request = roles_service_pb2.AssignRoleRequest(
            user_id=user.user_id, workspace_id=workspace_id, role=role
        )
        given = (await self.stub.AssignRole(request)).role
        assert (given.user_name, given.workspace_id, given.role) == (user.name, workspace_id, role)

    async def remove(self, user: User, workspace_id: int) -> None:
        """Takes a role away."""
        request = roles_service_pb2.RemoveRoleRequest(user_id=user.user_id, workspace_id=workspace_id)
        await self.stub.RemoveRole(request)

    async def roles(self, **fields: Any) -> list[tuple[str, str, int]]:
        """Lists users, workspaces and roles, page by page."""
        found: list[tuple[str, str, int]] = []
        request = roles_service_pb2.ListRolesRequest(page_size=2, **fields)
        while True:
            response = await self.stub.ListRoles(request)
            found += [(one.user_name, one.workspace_name, one.role) for one in response.roles]
            if not response.next_page_token:
                return found
            request.page_token = response.next_page_token

    async def audit(self, resource: str) -> list[tuple[str, str]]:
        """Lists actions and users of what was done to a workspace, newest first."""
        rows = await self.access.ListAuditRows(access_service_pb2.ListAuditRowsRequest(resources=[resource]))
        return [(row.action, str(to_mapping(row.detail).get("user", ""))) for row in rows.rows]


@asynccontextmanager
async def calls(running: Running, user: User) -> AsyncIterator[Calls]:
    async with running.channel(running.signer.user(user, ttl=600)) as channel:
        yield Calls(AccessServiceStub(channel), WorkspacesServiceStub(channel), RolesServiceStub(channel))


def test_roles_are_given_replaced_listed_and_taken_away(tmp_path: Path, database_url: str) -> None:
    async def scenario() -> None:
        key = load_or_create_key(tmp_path / "data/experiments/signing-key.pem")
        async with (
            serving([BLUEPRINT], tmp_path, database_url=database_url, key=key) as running,
            calls(running, User("admin", Role.ADMIN, 1)) as admin,
        ):
            vision, text = await admin.create_workspace("vision"), await admin.create_workspace("text")
            ada, bob = [await admin.create_user(name, Role.MEMBER) for name in ("ada", "bob")]
            await admin.assign(ada, vision, VIEWER)
            await admin.assign(ada, vision, ADMIN)
            await admin.assign(ada, vision, ADMIN)
            await admin.assign(bob, text, EDITOR)
            assert await admin.roles(order_by="workspace_name, user_name") == [
                ("admin", "text", ADMIN),
                ("bob", "text", EDITOR),
                ("ada", "vision", ADMIN),
                ("admin", "vision", ADMIN),
            ]
            await _members_lead_their_workspaces_alone(running, ada, bob, vision=vision, text=text)
            await _wrong_roles_are_refused(admin, ada, vision)
            await admin.remove(bob, text)
            await admin.remove(bob, text)
            await admin.places.DeleteWorkspace(
                workspaces_service_pb2.DeleteWorkspaceRequest(workspace_id=vision)
            )
            assert await admin.roles() == [("admin", "text", ADMIN)]
            assert await admin.audit("workspace text") == [
                ("remove_role", "bob"),
                ("assign_role", "bob"),
                ("create_workspace", ""),
            ]

    asyncio.run(scenario())


async def _members_lead_their_workspaces_alone(
    running: Running, ada: User, bob: User, *, vision: int, text: int
) -> None:
    async with calls(running, ada) as hers:
        await hers.assign(bob, vision, VIEWER)
        assert await hers.roles() == [
            ("ada", "vision", ADMIN),
            ("admin", "vision", ADMIN),
            ("bob", "vision", VIEWER),
        ]
        for workspace_id in (text, 999, 2**40):
            with pytest.raises(NotFoundError, match="has no role in its workspace"):
                await hers.assign(bob, workspace_id, VIEWER)
            with pytest.raises(NotFoundError, match="has no role in its workspace"):
                await hers.roles(workspace_ids=[workspace_id])
        with pytest.raises(PermissionDeniedError, match="ada is a member in the cluster"):
            await hers.create_workspace("hers")
        await hers.remove(bob, vision)
    async with calls(running, bob) as his:
        with pytest.raises(PermissionDeniedError, match="needs the role admin in that workspace"):
            await his.assign(bob, text, ADMIN)


async def _wrong_roles_are_refused(admin: Calls, ada: User, vision: int) -> None:
    with pytest.raises(InvalidArgumentError, match="member is not a role in a workspace"):
        await admin.assign(ada, vision, MEMBER)
    with pytest.raises(NotFoundError, match="user 999 does not exist"):
        await admin.assign(User("nobody", Role.MEMBER, 999), vision, VIEWER)
    with pytest.raises(NotFoundError, match="workspace 999 does not exist"):
        await admin.assign(ada, 999, VIEWER)
