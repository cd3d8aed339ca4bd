"""Tokens that were issued to users: not the tokens themselves, only that they exist."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import NotFoundError
from resolute_experiments.store.schema import tokens


@dataclass(frozen=True, kw_only=True)
class IssuedToken:
    """One row of ``tokens``."""

    id: str
    username: str
    description: str
    created_at: float
    expires_at: float
    revoked: bool
    position: int = 0
    """Place in the order of issue; given by the database."""


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
    row = connection.execute(sa.select(tokens).where(tokens.c.id == token_id)).mappings().one_or_none()
    if row is None:
        raise NotFoundError(
            f"token {token_id!r} does not exist or has expired; `resolute token list` shows those that do",
            resource=f"token {token_id}",
        )
    return IssuedToken(**row)


def page(
    connection: Connection, *, username: str, now: float, before: int | None, limit: int
) -> list[IssuedToken]:
    """Reads tokens that have not expired, newest first.

    Args:
        connection: A read transaction.
        username: Only of this user; empty for all.
        now: Unix seconds.
        before: Only those before this position.
        limit: The most rows.
    """
    query = sa.select(tokens).where(tokens.c.expires_at > now).order_by(tokens.c.position.desc()).limit(limit)
    if username:
        query = query.where(tokens.c.username == username)
    if before is not None:
        query = query.where(tokens.c.position < before)
    return [IssuedToken(**row) for row in connection.execute(query).mappings()]


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
