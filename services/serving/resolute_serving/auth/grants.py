"""The roles that a caller has: one in the cluster, and others in workspaces."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field

from resolute.errors import NotFoundError, PermissionDeniedError
from resolute_serving.context import Role, User, actor, current_principal

NO_WORKSPACE = 0
"""Stands for the workspace of what belongs to none: there the role in the cluster counts alone."""


@dataclass(frozen=True)
class Grants:
    """The roles of a caller."""

    cluster: Role = Role.MEMBER
    """Its role in the cluster, which it has in every workspace."""
    workspaces: Mapping[int, Role] = field(default_factory=dict)
    """Its roles in single workspaces, by their ids."""

    def allows(self, role: Role, workspace_id: int) -> bool:
        """Whether the caller may do in a workspace what a role allows."""
        own = self.workspaces.get(workspace_id, Role.MEMBER)
        return self.cluster.includes(role) or own.includes(role)

    def anywhere(self, role: Role) -> bool:
        """Whether the caller has a role in some workspace, or in the cluster."""
        return any(own.includes(role) for own in (self.cluster, *self.workspaces.values()))

    @property
    def visible(self) -> frozenset[int] | None:
        """Ids of the workspaces that the caller may see; None for all."""
        if self.cluster.includes(Role.VIEWER):
            return None
        return frozenset(number for number, role in self.workspaces.items() if role.includes(Role.VIEWER))

    def sees(self, workspace_id: int) -> bool:
        """Whether the caller may see a workspace."""
        return self.allows(Role.VIEWER, workspace_id)

    def require(self, role: Role, workspace_id: int, *, name: str) -> None:
        """Makes sure that the caller has a role in a workspace.

        Args:
            role: The role.
            workspace_id: The workspace.
            name: What the caller asks for, such as ``experiment 3``.

        Raises:
            NotFoundError: The caller may not see it, so it must not learn whether it exists.
            PermissionDeniedError: The caller may see it, and do no more.
        """
        if not self.sees(workspace_id):
            raise hidden(name)
        if not self.allows(role, workspace_id):
            where = "that workspace" if workspace_id != NO_WORKSPACE else "the cluster"
            raise PermissionDeniedError(
                f"{_caller()} needs the role {role.value} in {where} for {name}; ask an admin of it"
            )


EVERYTHING = Grants(Role.ADMIN)
"""What services have."""

current_grants: ContextVar[Grants] = ContextVar("current_grants", default=EVERYTHING)
"""The roles of the caller whose call is being handled; outside of calls nothing is withheld."""


def hidden(name: str) -> NotFoundError:
    """Refuses access to what the caller may not see, or what does not exist: the answer is the same."""
    return NotFoundError(
        f"{name} does not exist, or {_caller()} has no role in its workspace; "
        "`resolute workspace role list` shows the roles",
        resource=name,
    )


def _caller() -> str:
    principal = current_principal.get()
    return f"user {principal.name}" if isinstance(principal, User) else actor()
