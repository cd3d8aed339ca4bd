"""Users."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import AlreadyExistsError, FailedPreconditionError, NotFoundError
from resolute_experiments.store.schema import experiments, projects, tokens, users, workspaces
from resolute_serving.context import Role, User
from resolute_serving.database.prepared import PreparedStatement
from resolute_serving.pagination import Ordering

ORDERING = Ordering(
    {"name": users.c.name, "create_time": users.c.created_at}, unique=users.c.number, default="name"
)
"""How lists of users may be ordered."""

DETERMINED_USER = "determined"
"""The second user of every cluster, named by scripts for Determined. It has no password at first."""
_NAMED_BY = (tokens.c.username, workspaces.c.owner, projects.c.owner)
"""Columns that hold names of users, beside the owner of an experiment. They change with the names."""


@dataclass(frozen=True, kw_only=True)
class Account:
    """One row of ``users``."""

    number: int
    """The user's id."""
    name: str
    role: Role
    active: bool
    """Whether anybody may act as this user."""
    password: str
    """Its salted hash; empty when no password lets the user in."""
    created_at: float
    revision: int

    @property
    def user(self) -> User:
        """Who a token of this account speaks for.

        Raises:
            FailedPreconditionError: The account is not active.
        """
        if not self.active:
            raise FailedPreconditionError(
                f"user {self.name} is deactivated; an admin can reactivate the user with "
                f"`resolute user activate {self.name}`"
            )
        return User(name=self.name, role=self.role, user_id=self.number)


_BY_NAME = PreparedStatement(sa.select(users).where(users.c.name == sa.bindparam("name")))
_BY_NUMBER = PreparedStatement(sa.select(users).where(users.c.number == sa.bindparam("number")))


def ensure(connection: Connection, user: User, *, now: float) -> None:
    """Writes a user, unless the name is known."""
    if find(connection, user.name) is None:
        _insert(connection, user, now=now)


def create(connection: Connection, user: User, *, active: bool = True, now: float) -> Account:
    """Writes a new user.

    Raises:
        AlreadyExistsError: The name is taken.
    """
    _check_free(connection, user.name)
    _insert(connection, user, active=active, now=now)
    return get(connection, name=user.name)


def get(connection: Connection, *, number: int = 0, name: str = "") -> Account:
    """Reads a user by id or by name.

    Raises:
        NotFoundError: There is none.
    """
    if name:
        row = _BY_NAME.mapping(connection, {"name": name})
    else:
        row = _BY_NUMBER.mapping(connection, {"number": number})
    if row is None:
        raise NotFoundError(
            f"user {name or number!r} does not exist",
            resource=f"user {name or number}",
        )
    return account(row)


def find(connection: Connection, name: str) -> Account | None:
    """Reads a user by name; None when there is none."""
    row = _BY_NAME.mapping(connection, {"name": name})
    return None if row is None else account(row)


def owner_of(connection: Connection, experiment_id: str) -> Account | None:
    """Reads the owner of an experiment, without its config; None when that is no user of this cluster."""
    query = sa.select(users).join(experiments, experiments.c.owner == users.c.name)
    row = connection.execute(query.where(experiments.c.id == experiment_id)).mappings().one_or_none()
    return None if row is None else account(row)


def ids_of(connection: Connection, names: Iterable[str]) -> dict[str, int]:
    """The ids of those names that belong to users."""
    query = sa.select(users.c.name, users.c.number).where(users.c.name.in_(set(names)))
    return {row.name: row.number for row in connection.execute(query)}


def update(connection: Connection, before: Account, *, name: str, role: Role, active: bool) -> Account:
    """Sets a user's name, role, and whether anybody may act as the user.

    Raises:
        AlreadyExistsError: The new name is taken.
        FailedPreconditionError: The operator's own user would get another name.
    """
    if name != before.name:
        _rename(connection, before, name)
    connection.execute(
        sa.update(users)
        .where(users.c.number == before.number)
        .values(name=name, role=role.value, active=active, revision=users.c.revision + 1)
    )
    return get(connection, number=before.number)


def set_password(connection: Connection, number: int, hashed: str) -> Account:
    """Sets the hash of a user's password."""
    connection.execute(
        sa.update(users)
        .where(users.c.number == number)
        .values(password=hashed, revision=users.c.revision + 1)
    )
    return get(connection, number=number)


def replace_hash(connection: Connection, number: int, before: str, after: str) -> None:
    """Replaces the hash of a user's password by another of the same, unless the password has changed."""
    connection.execute(
        sa.update(users).where(users.c.number == number, users.c.password == before).values(password=after)
    )


def active_admins(connection: Connection) -> int:
    """Counts the admins that somebody may act as."""
    query = sa.select(sa.func.count()).select_from(users)
    return int(connection.execute(query.where(users.c.role == Role.ADMIN.value, users.c.active)).scalar_one())


def several(connection: Connection) -> bool:
    """Whether somebody besides the operator may sign in: not Determined's default user without a password."""
    may_sign_in = users.c.active & ((users.c.name != DETERMINED_USER) | (users.c.password != ""))
    query = sa.select(users.c.number).where(may_sign_in).limit(2)
    return len(connection.execute(query).all()) > 1


def account(row: Mapping[Any, Any]) -> Account:
    """Reads a row."""
    return Account(
        number=row["number"],
        name=row["name"],
        role=Role(row["role"]),
        active=row["active"],
        password=row["password"],
        created_at=row["created_at"],
        revision=row["revision"],
    )


def _rename(connection: Connection, before: Account, name: str) -> None:
    if before.number == 1:
        raise FailedPreconditionError(
            f"user {before.name} keeps its name: the cluster's own operator acts under it"
        )
    _check_free(connection, name, own=before.number)
    for column in _NAMED_BY:
        table = column.table
        assert isinstance(table, sa.Table)
        connection.execute(sa.update(table).where(column == before.name).values({column: name}))
    connection.execute(
        sa.update(experiments)
        .where(experiments.c.owner == before.name)
        .values(owner=name, revision=experiments.c.revision + 1)
    )


def _check_free(connection: Connection, name: str, *, own: int = 0) -> None:
    """Makes sure that no user but ``own`` has the name, in capitals or not: people confuse the two."""
    query = sa.select(users.c.name).where(sa.func.lower(users.c.name) == name.lower(), users.c.number != own)
    taken = connection.execute(query.limit(1)).scalar_one_or_none()
    if taken is not None:
        raise AlreadyExistsError(f"user {taken} exists already; choose another name", resource=name)


def _insert(connection: Connection, user: User, *, active: bool = True, now: float) -> None:
    connection.execute(
        sa.insert(users).values(
            name=user.name, role=user.role.value, created_at=now, active=active, password=""
        )
    )
