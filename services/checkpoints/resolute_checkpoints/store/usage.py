"""The bytes that checkpoints and media use, by workspace and by experiment.

Rows of files are removed after the files. So files that are being deleted count until they are removed, and
files of a deleted checkpoint count while others share them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from resolute_checkpoints.store.schema import MEDIA_INTAKE, checkpoints, files

MOST_EXPERIMENTS = 100
"""That one list has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentUsage:
    """The usage of one experiment."""

    experiment_id: str
    checkpoint_count: int
    checkpoint_bytes: int
    media_bytes: int


def of_workspace(connection: Connection, workspace_id: int) -> int:
    """Returns the bytes that were written in a workspace.

    What several checkpoints share, or several media of an experiment, counts once.
    """
    objects = _objects(workspace_id)
    queries = (
        sa.select(sa.func.coalesce(sa.func.sum(objects.c.size), 0)),
        sa.select(sa.func.coalesce(sa.func.sum(_logged.c.bytes), 0)).where(
            _logged.c.workspace == workspace_id
        ),
    )
    return sum(int(connection.execute(query).scalar_one()) for query in queries)


def of_experiments(connection: Connection, workspace_id: int) -> list[ExperimentUsage]:
    """Returns the bytes of the largest experiments, the largest first.

    An object that several experiments share counts for each.
    """
    objects = _objects(workspace_id, checkpoints.c.experiment_id)
    stored = _pairs(
        connection,
        sa.select(objects.c.experiment_id, sa.func.sum(objects.c.size)).group_by(objects.c.experiment_id),
    )
    logged = _pairs(
        connection,
        sa.select(MEDIA_INTAKE.experiments.c.experiment_id, sa.func.sum(_logged.c.bytes))
        .join(_logged, _logged.c.experiment_key == MEDIA_INTAKE.experiments.c.experiment_key)
        .where(_logged.c.workspace == workspace_id)
        .group_by(MEDIA_INTAKE.experiments.c.experiment_id),
    )
    totals = {name: stored.get(name, 0) + logged.get(name, 0) for name in {*stored, *logged}}
    largest = sorted((name for name in totals if totals[name]), key=lambda name: (-totals[name], name))
    shown = largest[:MOST_EXPERIMENTS]
    counts = _pairs(
        connection,
        sa.select(checkpoints.c.experiment_id, sa.func.count(sa.distinct(checkpoints.c.checkpoint_id)))
        .where(checkpoints.c.workspace_id == workspace_id, checkpoints.c.experiment_id.in_(shown))
        .where(sa.exists().where(files.c.checkpoint_id == checkpoints.c.checkpoint_id))
        .group_by(checkpoints.c.experiment_id),
    )
    return [
        ExperimentUsage(
            experiment_id=name,
            checkpoint_count=counts.get(name, 0),
            checkpoint_bytes=stored.get(name, 0),
            media_bytes=logged.get(name, 0),
        )
        for name in shown
    ]


_logged = MEDIA_INTAKE.trials


def _objects(workspace_id: int, *columns: sa.ColumnElement[Any]) -> sa.Subquery:
    """Returns the size of each object of a workspace, once for each value of some columns."""
    return (
        sa.select(*columns, sa.func.max(files.c.size).label("size"))
        .select_from(files.join(checkpoints, files.c.checkpoint_id == checkpoints.c.checkpoint_id))
        .where(checkpoints.c.workspace_id == workspace_id)
        .group_by(
            *columns,
            sa.func.coalesce(files.c.home_id, files.c.checkpoint_id),
            sa.func.coalesce(files.c.home_path, files.c.path),
        )
        .subquery()
    )


def _pairs(connection: Connection, query: sa.Select[Any]) -> dict[str, int]:
    return {name: int(value) for name, value in connection.execute(query)}
