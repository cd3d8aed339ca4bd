"""Settings of the OpenID provider, and the roles of its groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from resolute.contracts.calls.openid import is_safe_url
from resolute.errors import InvalidArgumentError
from resolute_serving.context import Role

ISSUER_VARIABLE = "RESOLUTE_OPENID_ISSUER"
CLIENT_VARIABLE = "RESOLUTE_OPENID_CLIENT_ID"
ROLES_VARIABLE = "RESOLUTE_OPENID_ROLES"
SCOPES_VARIABLE = "RESOLUTE_OPENID_SCOPES"


@dataclass(frozen=True)
class GroupRole:
    """The role of a group."""

    group: str
    role: Role
    workspace: str
    """Name of the workspace where it counts; empty for the whole cluster."""


@dataclass(frozen=True, kw_only=True)
class OpenIdSettings:
    """The settings of a provider. Fields that name a variable are read from it."""

    issuer: str
    """RESOLUTE_OPENID_ISSUER: its URL."""
    client_id: str
    """RESOLUTE_OPENID_CLIENT_ID: what the provider calls this cluster; a public client."""
    roles: tuple[GroupRole, ...]
    """RESOLUTE_OPENID_ROLES: ``GROUP=ROLE`` or ``GROUP=WORKSPACE:ROLE``, separated by commas."""
    scopes: tuple[str, ...] = ("openid", "profile", "groups")
    """RESOLUTE_OPENID_SCOPES: what to ask for, separated by spaces."""
    name_claim: str = "preferred_username"
    """RESOLUTE_OPENID_NAME_CLAIM: the claim that names new users."""
    groups_claim: str = "groups"
    """RESOLUTE_OPENID_GROUPS_CLAIM: the claim that lists groups."""

    @classmethod
    def from_environment(cls, variables: Mapping[str, str]) -> OpenIdSettings | None:
        """Reads and checks the settings; None where no provider is named.

        Raises:
            InvalidArgumentError: A variable is wrong; the message names it.
        """
        issuer = variables.get(ISSUER_VARIABLE, "")
        if not issuer:
            return None
        if not is_safe_url(issuer):
            raise InvalidArgumentError(f"{ISSUER_VARIABLE} is {issuer!r}; it must be an https URL")
        client_id = variables.get(CLIENT_VARIABLE, "")
        if not client_id:
            raise InvalidArgumentError(f"{CLIENT_VARIABLE} is missing; {ISSUER_VARIABLE} is set")
        roles = tuple(
            _group_role(item) for item in variables.get(ROLES_VARIABLE, "").split(",") if item.strip()
        )
        if not roles:
            raise InvalidArgumentError(f"{ROLES_VARIABLE} is missing; without it no user may sign in")
        scopes = tuple(variables.get(SCOPES_VARIABLE, "").split()) or cls.scopes
        if "openid" not in scopes:
            raise InvalidArgumentError(
                f"{SCOPES_VARIABLE} is {' '.join(scopes)!r}; without the scope openid there is no ID token"
            )
        return cls(
            issuer=issuer,
            client_id=client_id,
            roles=roles,
            scopes=scopes,
            name_claim=variables.get("RESOLUTE_OPENID_NAME_CLAIM") or cls.name_claim,
            groups_claim=variables.get("RESOLUTE_OPENID_GROUPS_CLAIM") or cls.groups_claim,
        )


def _group_role(text: str) -> GroupRole:
    group, separator, granted = text.strip().rpartition("=")
    workspace, _, role = granted.rpartition(":")
    known = {one.value: one for one in Role}
    if not separator or not group or role not in known or (workspace and known[role] is Role.MEMBER):
        raise InvalidArgumentError(
            f"{ROLES_VARIABLE} has {text.strip()!r}; write GROUP=ROLE or GROUP=WORKSPACE:ROLE, "
            f"separated by commas, where ROLE is one of {', '.join(known)}"
        )
    return GroupRole(group, known[role], workspace)
