"""Tokens that were issued to users: not the tokens themselves, only that they exist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from resolute.errors import NotFoundError
from resolute_experiments.store.schema import tokens, users
from resolute_serving.pagination import Ordering

ORDERING = Ordering(
    {"create_time": tokens.c.created_at, "expire_time": tokens.c.expires_at},
    unique=tokens.c.position,
    default="create_time desc",
)
"""How lists of tokens may be ordered."""


@dataclass(frozen=True, kw_only=True)
class IssuedToken:
    """One row of ``tokens``."""

    id: str
    username: str
    user_number: int
    """Id of the user."""
    description: str
    created_at: float
    expires_at: float
    revoked: bool


def insert(connection: Connection, token: IssuedToken) -> None:
    """Writes that a token was issued, and forgets those that have expired."""
    connection.execute(sa.delete(tokens).where(tokens.c.expires_at <= token.created_at))
    connection.execute(
        sa.insert(tokens).values(
            id=token.id,
            username=token.username,
            description=token.description,
            created_at=token.created_at,
            expires_at=token.expires_at,
            revoked=token.revoked,
        )
    )


def get(connection: Connection, token_id: str) -> IssuedToken:
    """Reads a token.

    Raises:
        NotFoundError: There is none, or it has expired and was forgotten.
    """
    row = connection.execute(all_tokens().where(tokens.c.id == token_id)).mappings().one_or_none()
    if row is None:
        raise NotFoundError(
            f"token {token_id!r} does not exist or has expired; `resolute token list` lists the others",
            resource=f"token {token_id}",
        )
    return issued(row)


def all_tokens() -> sa.Select[Any]:
    """Selects all tokens, with the ids of their users."""
    return sa.select(tokens, users.c.number.label("user_number")).join(
        users, users.c.name == tokens.c.username
    )


def issued(row: RowMapping) -> IssuedToken:
    """Reads a row of ``all_tokens``."""
    return IssuedToken(
        id=row["id"],
        username=row["username"],
        user_number=row["user_number"],
        description=row["description"],
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        revoked=row["revoked"],
    )


def revoke(connection: Connection, token_id: str) -> None:
    """Ends a token."""
    connection.execute(sa.update(tokens).where(tokens.c.id == token_id).values(revoked=True))


def revoke_all(connection: Connection, username: str) -> None:
    """Ends all tokens of a user."""
    connection.execute(sa.update(tokens).where(tokens.c.username == username).values(revoked=True))


def revoked(connection: Connection, *, now: float) -> list[str]:
    """Identifiers of tokens that were ended and would still be valid."""
    query = sa.select(tokens.c.id).where(tokens.c.revoked, tokens.c.expires_at > now).order_by(tokens.c.id)
    return list(connection.execute(query).scalars())
