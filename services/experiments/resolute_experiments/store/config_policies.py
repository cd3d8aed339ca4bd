"""Policies for configs, which admins set for all experiments or for those of one workspace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from resolute_experiments.store.schema import config_policies as table
from resolute_experiments.store.schema import workspaces

CLUSTER = 0
"""In place of a workspace's number: the policies of the cluster."""


@dataclass(frozen=True)
class Constraints:
    """Upper limits for a config. None means no limit."""

    max_slots: int | None = None
    """Most slots of a trial, and of an experiment."""
    priority_limit: int | None = None
    """The most urgent priority, from 1 (most urgent) to 99."""

    def under(self, higher: Constraints) -> Constraints:
        """Where the higher ones set no limit, these count."""
        return Constraints(
            self.max_slots if higher.max_slots is None else higher.max_slots,
            self.priority_limit if higher.priority_limit is None else higher.priority_limit,
        )


@dataclass(frozen=True, kw_only=True)
class ConfigPolicies:
    """One row of ``config_policies``."""

    workspace_number: int
    """``CLUSTER`` for those of the cluster."""
    workspace_name: str = ""
    """Empty for those of the cluster."""
    invariants: dict[str, Any] = field(default_factory=dict)
    """Part of a config in canonical form, which wins over what configs say."""
    constraints: Constraints = Constraints()
    updated_at: float = 0.0
    """Unix seconds; zero when none were ever set."""

    @property
    def label(self) -> str:
        """What messages call them."""
        if self.workspace_number == CLUSTER:
            return "the config policies of the cluster"
        return f"the config policies of workspace {self.workspace_name!r}"


def write(connection: Connection, policies: ConfigPolicies) -> None:
    """Writes policies in place of all that were there."""
    delete(connection, policies.workspace_number)
    connection.execute(
        sa.insert(table).values(
            workspace_number=policies.workspace_number,
            invariants=policies.invariants,
            max_slots=policies.constraints.max_slots,
            priority_limit=policies.constraints.priority_limit,
            updated_at=policies.updated_at,
        )
    )


def delete(connection: Connection, workspace_number: int) -> bool:
    """Removes policies; tells whether there were any."""
    deleted = connection.execute(sa.delete(table).where(table.c.workspace_number == workspace_number))
    return deleted.rowcount > 0


def find(connection: Connection, workspace_number: int) -> ConfigPolicies | None:
    """Reads the policies of a workspace or of the cluster; None when there are none."""
    row = connection.execute(_all().where(table.c.workspace_number == workspace_number)).mappings().first()
    return None if row is None else _policies(row)


def effective(connection: Connection, workspace: str) -> tuple[ConfigPolicies, ...]:
    """Reads what counts in a workspace: the cluster's policies, then the workspace's own.

    Args:
        connection: A transaction.
        workspace: Name of the workspace; one that does not exist has none of its own.
    """
    wanted = sa.or_(table.c.workspace_number == CLUSTER, workspaces.c.name == workspace)
    rows = connection.execute(_all().where(wanted).order_by(table.c.workspace_number)).mappings()
    return tuple(_policies(row) for row in rows)


def any_of_workspaces(connection: Connection) -> bool:
    """Whether some workspace has policies of its own."""
    query = sa.select(table.c.workspace_number).where(table.c.workspace_number != CLUSTER).limit(1)
    return connection.execute(query).first() is not None


def _all() -> sa.Select[Any]:
    named = workspaces.c.number == table.c.workspace_number
    return sa.select(table, workspaces.c.name).select_from(table.outerjoin(workspaces, named))


def _policies(row: RowMapping) -> ConfigPolicies:
    return ConfigPolicies(
        workspace_number=row["workspace_number"],
        workspace_name=row["name"] or "",
        invariants=row["invariants"],
        constraints=Constraints(row["max_slots"], row["priority_limit"]),
        updated_at=row["updated_at"],
    )
