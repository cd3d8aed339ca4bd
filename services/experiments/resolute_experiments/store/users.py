"""Users."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import AlreadyExistsError, FailedPreconditionError, NotFoundError
from resolute_experiments.store.schema import users
from resolute_serving.context import Role, User


@dataclass(frozen=True, kw_only=True)
class Account:
    """One row of ``users``."""

    name: str
    role: Role
    active: bool
    """Whether anybody may act as this user."""
    password: str
    """Its salted hash; empty when no password lets the user in."""
    created_at: float

    @property
    def user(self) -> User:
        """Who a token of this account speaks for.

        Raises:
            FailedPreconditionError: The account is not active.
        """
        if not self.active:
            raise FailedPreconditionError(
                f"user {self.name} is deactivated; an admin lets the user in again with "
                f"`resolute user activate {self.name}`"
            )
        return User(name=self.name, role=self.role)


def ensure(connection: Connection, user: User, *, now: float) -> None:
    """Writes a user, unless the name is known."""
    if _row(connection, user.name) is None:
        _insert(connection, user, now=now)


def create(connection: Connection, user: User, *, now: float) -> Account:
    """Writes a new user.

    Raises:
        AlreadyExistsError: The name is taken.
    """
    if _row(connection, user.name) is not None:
        raise AlreadyExistsError(f"user {user.name} exists already; choose another name", resource=user.name)
    _insert(connection, user, now=now)
    return get(connection, user.name)


def get(connection: Connection, name: str) -> Account:
    """Reads a user.

    Raises:
        NotFoundError: There is none of this name.
    """
    row = _row(connection, name)
    if row is None:
        raise NotFoundError(
            f"user {name!r} does not exist; `resolute user list` shows those that do",
            resource=f"user {name}",
        )
    return _account(row)


def find(connection: Connection, name: str) -> Account | None:
    """Reads a user; None when there is none of this name."""
    row = _row(connection, name)
    return None if row is None else _account(row)


def page(connection: Connection, *, after: str, limit: int) -> list[Account]:
    """Reads users by name."""
    query = sa.select(users).where(users.c.name > after).order_by(users.c.name).limit(limit)
    return [_account(row) for row in connection.execute(query)]


def update(connection: Connection, name: str, *, role: Role, active: bool) -> None:
    """Sets what a user may do and whether anybody may act as it."""
    connection.execute(sa.update(users).where(users.c.name == name).values(role=role.value, active=active))


def set_password(connection: Connection, name: str, hashed: str) -> None:
    """Sets the hash of a user's password."""
    connection.execute(sa.update(users).where(users.c.name == name).values(password=hashed))


def active_admins(connection: Connection) -> int:
    """Counts the admins that somebody may act as."""
    query = sa.select(sa.func.count()).select_from(users)
    return int(connection.execute(query.where(users.c.role == Role.ADMIN.value, users.c.active)).scalar_one())


def _row(connection: Connection, name: str) -> sa.Row[tuple[object, ...]] | None:
    return connection.execute(sa.select(users).where(users.c.name == name)).one_or_none()


def _insert(connection: Connection, user: User, *, now: float) -> None:
    connection.execute(
        sa.insert(users).values(
            name=user.name, role=user.role.value, created_at=now, active=True, password=""
        )
    )


def _account(row: sa.Row[tuple[object, ...]]) -> Account:
    fields = row._mapping
    return Account(
        name=fields["name"],
        role=Role(fields["role"]),
        active=fields["active"],
        password=fields["password"],
        created_at=fields["created_at"],
    )
