"""Ids of workspaces and users for rows from before 0.1.0, which have only names."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_checkpoints.store.schema import checkpoints, model_versions, models


def assign(connection: Connection, *, workspaces: Mapping[str, int], users: Mapping[str, int]) -> None:
    """Sets ids where they are missing, and their names are known here."""
    for name, number, ids in (
        (checkpoints.c.workspace, checkpoints.c.workspace_id, workspaces),
        (models.c.workspace, models.c.workspace_id, workspaces),
        (models.c.owner, models.c.owner_id, users),
        (model_versions.c.owner, model_versions.c.owner_id, users),
    ):
        unassigned = connection.execute(sa.select(name).where(number.is_(None)).distinct()).scalars()
        for known in sorted(set(unassigned) & set(ids)):
            statement = sa.update(name.table).where(number.is_(None), name == known)
            connection.execute(statement.values({number: ids[known]}))
