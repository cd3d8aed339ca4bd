"""Rows of issued tokens, which contain only their existence and expiry, not the tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import NotFoundError
from resolute_experiments.states import RunOutcome
from resolute_experiments.store.schema import runs, tokens, users
from resolute_serving.pagination import Ordering

ORDERING = Ordering(
    {"create_time": tokens.c.created_at, "expire_time": tokens.c.expires_at},
    unique=tokens.c.position,
    default="create_time desc",
)
"""How lists of tokens may be ordered."""
RENEWABLE_SECONDS = 7 * 86_400.0
"""How long after its expiry the token of a service can still be renewed."""


class TokenKind(Enum):
    """The way in which a token was issued."""

    ACCESS = "access"
    SIGN_IN = "sign_in"
    PROVIDER_SIGN_IN = "provider_sign_in"
    OPERATOR = "operator"
    SERVICE = "service"
    RUN = "run"
    BROWSER = "browser"
    SIGN_IN_CODE = "sign_in_code"


class TokenScope(Enum):
    """The permitted use of a token."""

    ALL = "all"
    READ = "read"


@dataclass(frozen=True, kw_only=True)
class IssuedToken:
    """One row of ``tokens``."""

    id: str
    username: str
    """Name of the user; empty for a service."""
    user_number: int
    """Id of the user; zero for a service."""
    description: str
    created_at: float
    expires_at: float
    revoked: bool
    kind: TokenKind = TokenKind.ACCESS
    parent_id: str | None = None
    """The token with which it ends."""
    service: str = ""
    """Name of the service account."""
    allocation_id: str | None = None
    """The allocation with which it ends."""
    scope: TokenScope = TokenScope.ALL


def insert(connection: Connection, token: IssuedToken) -> None:
    """Writes that a token was issued, and forgets those that have expired."""
    old = sa.case(
        (tokens.c.kind == TokenKind.SERVICE.value, token.created_at - RENEWABLE_SECONDS),
        else_=token.created_at,
    )
    connection.execute(sa.delete(tokens).where(tokens.c.expires_at <= old))
    connection.execute(
        sa.insert(tokens).values(
            id=token.id,
            username=token.username,
            description=token.description,
            created_at=token.created_at,
            expires_at=token.expires_at,
            revoked=token.revoked,
            kind=token.kind.value,
            parent_id=token.parent_id,
            service=token.service,
            allocation_id=token.allocation_id,
            scope=token.scope.value,
        )
    )


def get(connection: Connection, token_id: str) -> IssuedToken:
    """Reads a token.

    Raises:
        NotFoundError: There is none, or it has expired and was forgotten.
    """
    token = find(connection, token_id)
    if token is None:
        raise NotFoundError(
            f"token {token_id!r} does not exist or has expired; `resolute token list` lists the others",
            resource=f"token {token_id}",
        )
    return token


def find(connection: Connection, token_id: str) -> IssuedToken | None:
    """Reads a token; None when it is not known."""
    row = connection.execute(all_tokens().where(tokens.c.id == token_id)).mappings().one_or_none()
    return None if row is None else issued(row)


def consume(connection: Connection, token_id: str) -> bool:
    """Ends a token that is valid once; tells whether it was valid until now."""
    unused = sa.update(tokens).where(tokens.c.id == token_id, ~tokens.c.revoked).values(revoked=True)
    return connection.execute(unused).rowcount == 1


def current(
    connection: Connection, kind: TokenKind, *, user_number: int, allocation_id: str | None = None
) -> IssuedToken | None:
    """Reads the newest token of a kind and a user that is not revoked; None when there is none.

    Args:
        connection: The transaction.
        kind: The kind.
        user_number: Id of the user.
        allocation_id: Only the one of this allocation.
    """
    query = all_tokens().where(tokens.c.kind == kind.value, ~tokens.c.revoked, users.c.number == user_number)
    if allocation_id is not None:
        query = query.where(tokens.c.allocation_id == allocation_id)
    row = connection.execute(query.order_by(tokens.c.position.desc()).limit(1)).mappings().one_or_none()
    return None if row is None else issued(row)


def extend(connection: Connection, token_id: str, *, expires_at: float) -> None:
    """Lets a token expire later."""
    connection.execute(sa.update(tokens).where(tokens.c.id == token_id).values(expires_at=expires_at))


def describe(connection: Connection, token_id: str, description: str) -> None:
    """Changes the description of a token."""
    connection.execute(sa.update(tokens).where(tokens.c.id == token_id).values(description=description))


def all_tokens() -> sa.Select[Any]:
    """Selects all tokens, with the ids of their users."""
    return sa.select(tokens, users.c.number.label("user_number")).outerjoin(
        users, users.c.name == tokens.c.username
    )


def issued(row: Mapping[Any, Any]) -> IssuedToken:
    """Reads a row of ``all_tokens``."""
    return IssuedToken(
        id=row["id"],
        username=row["username"],
        user_number=row["user_number"] or 0,
        description=row["description"],
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        revoked=row["revoked"],
        kind=TokenKind(row["kind"]),
        parent_id=row["parent_id"],
        service=row["service"],
        allocation_id=row["allocation_id"],
        scope=TokenScope(row["scope"]),
    )


def revoke(connection: Connection, token_id: str) -> None:
    """Ends a token, and all that end with it."""
    _revoke(connection, tokens.c.id == token_id)


def revoke_all(connection: Connection, username: str, *, keep: str = "") -> None:
    """Ends all tokens of a user, and all that end with them.

    Args:
        connection: An open transaction.
        username: The user.
        keep: A token that stays; empty for none.
    """
    _revoke(connection, tokens.c.username == username, keep=keep)


def revoked(connection: Connection, *, now: float) -> Sequence[str]:
    """Identifiers of tokens that were ended and would still be valid, those of ended runs among them."""
    ended = sa.exists().where(
        runs.c.allocation_id == tokens.c.allocation_id, runs.c.outcome != RunOutcome.UNSPECIFIED.value
    )
    query = sa.select(tokens.c.id).where(
        tokens.c.revoked | ended,
        (tokens.c.expires_at > now) | (tokens.c.kind == TokenKind.SERVICE.value),
    )
    return connection.execute(query.order_by(tokens.c.id)).scalars().all()


def _revoke(connection: Connection, which: sa.ColumnElement[bool], *, keep: str = "") -> None:
    ending = sa.select(tokens.c.id).where(which, tokens.c.id != keep).cte("ending", recursive=True)
    children = tokens.alias("children")
    ending = ending.union(
        sa.select(children.c.id).where(children.c.parent_id == ending.c.id, children.c.id != keep)
    )
    connection.execute(sa.update(tokens).where(tokens.c.id.in_(sa.select(ending.c.id))).values(revoked=True))
