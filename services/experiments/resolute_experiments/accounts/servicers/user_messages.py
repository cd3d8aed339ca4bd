"""Builds the messages of users, tokens and audit rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from resolute.api.experiments.v1 import access_service_pb2, audit_row_pb2, role_pb2, token_pb2, user_pb2
from resolute.contracts.messages import to_message
from resolute.contracts.times import seconds_of, to_timestamp
from resolute.contracts.values import to_value
from resolute_experiments.accounts.store.tokens import IssuedToken, TokenKind, TokenScope
from resolute_experiments.accounts.store.users import Account
from resolute_experiments.accounts.store.workspace_roles import WorkspaceRole
from resolute_serving.auth.access_lookup import ROLES
from resolute_serving.auth.refusals import CountedRefusal, Refusal
from resolute_serving.context import Role
from resolute_serving.updates import etag_of
from resolute_serving.validation import invalid

ROLE_NUMBERS: Mapping[Role, user_pb2.UserRole.ValueType] = {
    Role.MEMBER: user_pb2.USER_ROLE_MEMBER,
    Role.VIEWER: user_pb2.USER_ROLE_VIEWER,
    Role.EDITOR: user_pb2.USER_ROLE_EDITOR,
    Role.ADMIN: user_pb2.USER_ROLE_ADMIN,
}


_KIND_NUMBERS: Mapping[TokenKind, token_pb2.TokenKind.ValueType] = {
    TokenKind.ACCESS: token_pb2.TOKEN_KIND_ACCESS,
    TokenKind.SIGN_IN: token_pb2.TOKEN_KIND_SIGN_IN,
    TokenKind.PROVIDER_SIGN_IN: token_pb2.TOKEN_KIND_SIGN_IN,
    TokenKind.OPERATOR: token_pb2.TOKEN_KIND_OPERATOR,
    TokenKind.SERVICE: token_pb2.TOKEN_KIND_SERVICE,
    TokenKind.RUN: token_pb2.TOKEN_KIND_RUN,
    TokenKind.BROWSER: token_pb2.TOKEN_KIND_BROWSER,
    TokenKind.SIGN_IN_CODE: token_pb2.TOKEN_KIND_SIGN_IN_CODE,
}
_SCOPE_NUMBERS: Mapping[TokenScope, token_pb2.TokenScope.ValueType] = {
    TokenScope.ALL: token_pb2.TOKEN_SCOPE_ALL,
    TokenScope.READ: token_pb2.TOKEN_SCOPE_READ,
}
TOKEN_SCOPES: Mapping[int, TokenScope] = {
    token_pb2.TOKEN_SCOPE_UNSPECIFIED: TokenScope.ALL,
    **{number: scope for scope, number in _SCOPE_NUMBERS.items()},
}
"""Scopes by their numbers in the contract. Requests with other numbers come to no handler."""
_UNLISTED = {TokenKind.RUN, TokenKind.SIGN_IN_CODE}
_TEXT = 200
"""Longest text of a refusal."""
_ACTION = 64
"""Longest action."""
_LARGEST_NUMBER = 2**31 - 1
"""Largest number that its columns of integers hold."""


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
    return to_message(
        user_pb2.User,
        account,
        user_id=account.number,
        has_password=bool(account.password),
        create_time=to_timestamp(account.created_at),
        etag=etag_of(account.revision),
    )


def workspace_role_message(role: WorkspaceRole) -> role_pb2.WorkspaceRole:
    """Shows a role in a workspace."""
    return to_message(
        role_pb2.WorkspaceRole,
        role,
        user_id=role.user_number,
        workspace_id=role.workspace_number,
        update_time=to_timestamp(role.updated_at),
    )


def token_kinds(numbers: Collection[int]) -> Collection[TokenKind]:
    """Reads the kinds of tokens that a list is asked for.

    Raises:
        InvalidArgumentError: One of them is none.
    """
    if not set(numbers) <= set(_KIND_NUMBERS.values()):
        raise invalid("kinds", "kinds has an unknown value; leave it out, or use values of TokenKind")
    return {kind for kind, number in _KIND_NUMBERS.items() if number in numbers} or set(TokenKind) - _UNLISTED


def refusal_of(message: access_service_pb2.Refusal) -> CountedRefusal:
    """Reads what a service refused. What the audit log cannot hold is cut: the rest must get there."""
    refusal = Refusal(
        actor=message.actor[:_TEXT],
        user_id=message.user_id if 0 < message.user_id <= _LARGEST_NUMBER else None,
        action=message.action[:_ACTION],
        resource=message.resource[:_TEXT],
        peer=message.peer[:_TEXT],
    )
    count = min(max(message.count, 1), _LARGEST_NUMBER)
    return CountedRefusal(refusal, count, seconds_of(message.time))


def token_message(token: IssuedToken) -> token_pb2.Token:
    """Shows what is known of a token."""
    return to_message(
        token_pb2.Token,
        token,
        token_id=token.id,
        user_id=token.user_number,
        user_name=token.username,
        create_time=to_timestamp(token.created_at),
        expire_time=to_timestamp(token.expires_at),
        kind=_KIND_NUMBERS[token.kind],
        parent_token_id=token.parent_id or "",
        service_name=token.service,
    )


def audit_message(row: Mapping[Any, Any]) -> audit_row_pb2.AuditRow:
    """Shows a row of the audit trail."""
    return audit_row_pb2.AuditRow(
        time=to_timestamp(row["time"]),
        actor=row["actor"],
        user_id=row["user_number"],
        action=row["action"],
        resource=row["resource"],
        detail=to_value(row["detail"]),
    )
