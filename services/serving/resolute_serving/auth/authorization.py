"""Decides whether a caller may make a call, by the table of permissions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from resolute.errors import InvalidArgumentError, PermissionDeniedError
from resolute_serving.auth.access_lookup import AccessLookup
from resolute_serving.auth.grants import EVERYTHING, Grants, hidden
from resolute_serving.auth.policy import service_accounts
from resolute_serving.auth.policy.permissions import PERMISSIONS, Need, Rule
from resolute_serving.auth.policy.resources import WITHOUT_WORKSPACE, Resource
from resolute_serving.auth.policy.scopes import ANYWHERE, CLUSTER
from resolute_serving.auth.policy.trial_scopes import checked_by_handler
from resolute_serving.context import Principal, Role, ServiceAccount, TrialRun, User

MAX_NAMED = 2000
"""Objects that one call of a user may name."""


async def authorize(
    method: str, principal: Principal, request: Any, *, lookup: AccessLookup | None = None
) -> Grants:
    """Lets a call pass or refuses it.

    The role in the cluster is in the token. Where that one suffices, nothing is looked up.

    Args:
        method: Full name, ``/package.Service/Method``.
        principal: Who calls.
        request: The request; for calls that stream requests, None.
        lookup: Knows roles and workspaces; None where only roles in the cluster count.

    Returns:
        The caller's roles, for handlers that leave out what the caller may not see.

    Raises:
        PermissionDeniedError: The rule of the method does not allow it, or there is no rule.
        NotFoundError: The request names what the caller may not see, or what does not exist.
    """
    rule = PERMISSIONS.get(method)
    if rule is None:
        raise PermissionDeniedError(f"{method} has no entry in the permission table, so no caller may use it")
    name = method.rsplit("/", 1)[1]
    if rule.public:
        return Grants()
    if isinstance(principal, User):
        user = _reader(rule, principal, name=name) if principal.read_only else principal
        return await _authorize_user(rule, user, request, name=name, lookup=lookup)
    if isinstance(principal, TrialRun):
        # Of streamed requests nothing is known yet: only a handler can check them.
        known = request is not None or rule.trial is checked_by_handler
        if rule.trial is not None and known and rule.trial(principal, request):
            return Grants()
        owner = f"trial {principal.trial_id} run {principal.run}"
        raise PermissionDeniedError(f"the token of {owner} gives no access to the objects of {name}")
    if isinstance(principal, ServiceAccount):
        if service_accounts.may_call(principal.name, method):
            return EVERYTHING
        raise PermissionDeniedError(f"{name} is not among the calls that the {principal.name} service makes")
    raise PermissionDeniedError(f"{name} may not be called by {principal}")


async def _authorize_user(
    rule: Rule, user: User, request: Any, *, name: str, lookup: AccessLookup | None
) -> Grants:
    if not rule.user:
        raise PermissionDeniedError(f"{name} is not for users; the platform calls it itself")
    if user.workspace_id and rule.personal:
        raise PermissionDeniedError(f"{name} is not for scripts in trials; call it from outside, as a person")
    cluster_role = Role.MEMBER if user.workspace_id else user.role
    unmet = [need for need in rule.user if not cluster_role.includes(need.role)]
    if not unmet:
        return await _own_grants(user, lookup) if user.workspace_id else Grants(user.role)
    if lookup is None or any(need.scope is CLUSTER for need in unmet):
        raise _too_low(user, unmet[0], name)
    grants = await _own_grants(user, lookup)
    for need in unmet:
        if need.scope is ANYWHERE and not grants.anywhere(need.role):
            raise _too_low(user, need, name)
    wanted = [(need, resource) for need in unmet for resource in _named(need, request)]
    if any(resource == WITHOUT_WORKSPACE for _, resource in wanted):
        # A role in the cluster would have sufficed; roles in workspaces are none in the cluster.
        raise PermissionDeniedError(
            f"{name} names no workspace, and user {user.name} may make things only in workspaces; name one"
        )
    if wanted and not grants.workspaces:
        need, resource = wanted[0]
        raise _too_low(user, need, name) if user.role.includes(Role.VIEWER) else hidden(str(resource))
    if wanted:
        await _require(grants, wanted, lookup)
    return grants


async def _own_grants(user: User, lookup: AccessLookup | None) -> Grants:
    """The roles of a user; for the SDK in a trial the one in its workspace alone."""
    if user.workspace_id:
        return Grants(Role.MEMBER, {user.workspace_id: user.role})
    roles = await lookup.roles(user) if lookup is not None else {}
    if user.read_only:
        roles = {workspace: _at_most_viewer(role) for workspace, role in roles.items()}
    return Grants(user.role, roles)


def _reader(rule: Rule, user: User, *, name: str) -> User:
    """A user with the role viewer at most; refuses calls that need more, or are about the user's account."""
    if rule.personal or any(not Role.VIEWER.includes(need.role) for need in rule.user):
        raise PermissionDeniedError(
            f"the token of user {user.name} may only read, with the role viewer at most, and {name} is more "
            "than that; use another token"
        )
    return replace(user, role=_at_most_viewer(user.role))


def _at_most_viewer(role: Role) -> Role:
    return Role.VIEWER if role.includes(Role.VIEWER) else role


async def _require(grants: Grants, wanted: Sequence[tuple[Need, Resource]], lookup: AccessLookup) -> None:
    """Makes sure that a user has the roles that are needed for objects."""
    if len(wanted) > MAX_NAMED:
        raise InvalidArgumentError(f"the request names {len(wanted)} objects; name at most {MAX_NAMED}")
    places = await lookup.workspaces({resource for _, resource in wanted})
    for need, resource in wanted:
        if resource not in places:
            raise hidden(str(resource))
        grants.require(need.role, places[resource], name=str(resource))


def _named(need: Need, request: Any) -> list[Resource]:
    return [] if request is None else list(need.scope.resources(request))


def _too_low(user: User, need: Need, name: str) -> PermissionDeniedError:
    if user.workspace_id:
        return PermissionDeniedError(
            f"{name} needs the role {need.role.value} in {need.scope.text}; the SDK in a trial acts for user "
            f"{user.name} in the workspace of its experiment alone, as an editor at most"
        )
    return PermissionDeniedError(
        f"user {user.name} is {_a(user.role)} in the cluster, and {name} needs the role {need.role.value} in "
        f"{need.scope.text}; ask an admin"
    )


def _a(role: Role) -> str:
    return f"an {role.value}" if role.value[0] in "ae" else f"a {role.value}"
