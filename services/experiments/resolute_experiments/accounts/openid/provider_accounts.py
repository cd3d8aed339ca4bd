"""Accounts of the OpenID provider's users, with the roles of their groups."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import FailedPreconditionError, PermissionDeniedError, UnauthenticatedError
from resolute_experiments.accounts.names import is_user_name
from resolute_experiments.accounts.openid.id_tokens import Identity
from resolute_experiments.accounts.openid.settings import GroupRole, OpenIdSettings
from resolute_experiments.accounts.store import tokens, users, workspace_roles, workspaces
from resolute_experiments.accounts.store.users import Account
from resolute_experiments.store import audit
from resolute_experiments.store.schema import openid_identities as identities
from resolute_serving.context import Role, User


def account_of(
    connection: Connection, settings: OpenIdSettings, identity: Identity, *, now: float
) -> Account | None:
    """Returns the user of a person, created at the first time, with the roles of today's groups.

    None if no group has a role: then a user who is known loses all tokens, and the roles that groups gave.

    Args:
        connection: A transaction that writes.
        settings: The provider.
        identity: The person.
        now: Unix time.

    Raises:
        PermissionDeniedError: The name belongs to another user.
        UnauthenticatedError: The user is deactivated.
        FailedPreconditionError: The cluster would have no admin left.
    """
    granted = [role for role in settings.roles if role.group in identity.groups]
    account = _known(connection, settings.issuer, identity.subject)
    if not granted:
        if account is not None:
            _withdraw(connection, account, settings.roles, now=now)
        return None
    role = _highest(role for role in granted if not role.workspace)
    if account is None:
        account = _create(connection, settings.issuer, identity, role=role, now=now)
    if not account.active:
        raise UnauthenticatedError(f"user {account.name} is deactivated; ask an admin")
    if account.role is not role:
        tokens.revoke_all(connection, account.name)
        account = users.update(connection, account, name=account.name, role=role, active=True)
        if users.active_admins(connection) == 0:
            raise FailedPreconditionError(
                f"user {account.name} is the last active admin, and the groups of today do not give that "
                "role; make another user an admin first"
            )
        audit.record(connection, "update_user", f"user {account.name}", now=now, role=role.value)
    _set_workspace_roles(connection, account, settings.roles, granted, now=now)
    return account


def _known(connection: Connection, issuer: str, subject: str) -> Account | None:
    query = sa.select(identities.c.user_number).where(
        identities.c.issuer == issuer, identities.c.subject == subject
    )
    number = connection.execute(query).scalar_one_or_none()
    return None if number is None else users.get(connection, number=number)


def _create(connection: Connection, issuer: str, identity: Identity, *, role: Role, now: float) -> Account:
    if not is_user_name(identity.name):
        raise PermissionDeniedError(
            f"{identity.name[:100]!r}, as the provider calls the user, is not a valid name here: 1 to 128 "
            "letters, digits and . _ - @, no dash first"
        )
    # A person who may choose a name at the provider must not become the user who has it here.
    if users.find(connection, identity.name) is not None:
        raise PermissionDeniedError(
            f"user {identity.name} exists in this cluster and does not come from the provider; an admin can "
            "rename that user"
        )
    account = users.create(connection, User(identity.name, role), now=now)
    row = {"issuer": issuer, "subject": identity.subject, "user_number": account.number}
    connection.execute(sa.insert(identities).values(row))
    audit.record(connection, "create_user", f"user {account.name}", now=now, role=role.value)
    return account


def has_identity(connection: Connection, number: int) -> bool:
    """Whether a user is somebody whom the provider signs in."""
    query = sa.select(identities.c.subject).where(identities.c.user_number == number)
    return connection.execute(query.limit(1)).scalar_one_or_none() is not None


def _withdraw(connection: Connection, account: Account, mapped: tuple[GroupRole, ...], *, now: float) -> None:
    """Takes away what the groups of a person gave."""
    tokens.revoke_all(connection, account.name)
    _set_workspace_roles(connection, account, mapped, [], now=now)
    # A cluster keeps its last admin, who has no token left.
    last_admin = account.active and account.role is Role.ADMIN and users.active_admins(connection) == 1
    role = Role.ADMIN if last_admin else Role.MEMBER
    if account.role is not role:
        users.update(connection, account, name=account.name, role=role, active=account.active)
    audit.record(connection, "update_user", f"user {account.name}", now=now, role=role.value)


def _set_workspace_roles(
    connection: Connection,
    account: Account,
    mapped: tuple[GroupRole, ...],
    granted: list[GroupRole],
    *,
    now: float,
) -> None:
    """Gives the roles of the groups in the workspaces that the settings name, and takes others there away."""
    for name in {one.workspace for one in mapped if one.workspace}:
        workspace = workspaces.find(connection, name)
        if workspace is None:
            continue
        key = {"user": account.number, "workspace": workspace.number}
        wanted = [role for role in granted if role.workspace == name]
        if not wanted:
            if workspace_roles.remove(connection, **key):
                audit.record(connection, "remove_role", f"workspace {name}", now=now, user=account.name)
        elif workspace_roles.assign(connection, **key, role=_highest(wanted), now=now):
            role = _highest(wanted).value
            audit.record(
                connection, "assign_role", f"workspace {name}", now=now, user=account.name, role=role
            )


def _highest(roles: Iterable[GroupRole]) -> Role:
    """The highest of some roles; that of a member for none."""
    return max((role.role for role in roles), key=list(Role).index, default=Role.MEMBER)
