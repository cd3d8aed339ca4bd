"""Messages of users, tokens and audit rows."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy.engine import RowMapping

from resolute.api.experiments.v1 import audit_row_pb2, role_pb2, token_pb2, user_pb2
from resolute.contracts.values import to_value
from resolute_experiments.servicers.messages.experiments import timestamp
from resolute_experiments.store.tokens import IssuedToken
from resolute_experiments.store.users import Account
from resolute_experiments.store.workspace_roles import WorkspaceRole
from resolute_serving.auth.directory import ROLES
from resolute_serving.context import Role
from resolute_serving.updates import etag_of
from resolute_serving.validation import invalid

ROLE_NUMBERS: Mapping[Role, user_pb2.UserRole.ValueType] = {
    Role.MEMBER: user_pb2.USER_ROLE_MEMBER,
    Role.VIEWER: user_pb2.USER_ROLE_VIEWER,
    Role.EDITOR: user_pb2.USER_ROLE_EDITOR,
    Role.ADMIN: user_pb2.USER_ROLE_ADMIN,
}


def role_of(number: int, *, field: str) -> Role:
    """Reads a role.

    Raises:
        InvalidArgumentError: It is none.
    """
    if number not in ROLES:
        raise invalid(field, f"{field} is missing; it is one of member, viewer, editor, admin")
    return ROLES[number]


def user_message(account: Account) -> user_pb2.User:
    """Shows a user."""
    return user_pb2.User(
        user_id=account.number,
        name=account.name,
        role=ROLE_NUMBERS[account.role],
        active=account.active,
        has_password=bool(account.password),
        create_time=timestamp(account.created_at),
        etag=etag_of(account.revision),
    )


def workspace_role_message(found: WorkspaceRole) -> role_pb2.WorkspaceRole:
    """Shows a role in a workspace."""
    return role_pb2.WorkspaceRole(
        user_id=found.user_number,
        user_name=found.user_name,
        workspace_id=found.workspace_number,
        workspace_name=found.workspace_name,
        role=ROLE_NUMBERS[found.role],
        update_time=timestamp(found.updated_at),
    )


def token_message(token: IssuedToken) -> token_pb2.Token:
    """Shows what is known of a token."""
    return token_pb2.Token(
        token_id=token.id,
        user_id=token.user_number,
        user_name=token.username,
        description=token.description,
        create_time=timestamp(token.created_at),
        expire_time=timestamp(token.expires_at),
        revoked=token.revoked,
    )


def audit_message(row: RowMapping) -> audit_row_pb2.AuditRow:
    """Shows a row of the audit trail."""
    return audit_row_pb2.AuditRow(
        time=timestamp(row["time"]),
        actor=row["actor"],
        user_id=row["user_number"],
        action=row["action"],
        resource=row["resource"],
        detail=to_value(row["detail"]),
    )
