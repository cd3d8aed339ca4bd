"""Deletes an experiment: its trials one after another, each in transactions of bounded size."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.contracts.clock import Clock
from resolute_serving.database.engine import Database, insert_new
from resolute_serving.ingestion.batches import lock_order
from resolute_serving.ingestion.tables import IngestionTables
from resolute_serving.validation import parse_uuid


async def delete_experiment(
    database: Database,
    tables: IngestionTables,
    experiment_id: str,
    *,
    clock: Clock,
    delete_part: Callable[[Connection, int], bool],
) -> None:
    """Removes everything of an experiment. After a failure, a repeated call continues.

    Args:
        database: The service's database.
        tables: Know the experiment.
        experiment_id: As the request has it.
        clock: Tells when it was deleted.
        delete_part: Removes a part of the data of the trial with a key; returns whether more may be left.

    Raises:
        InvalidArgumentError: The id is no UUID.
    """
    experiment = parse_uuid(experiment_id, field="experiment_id")
    now, order = clock.time(), lock_order(experiment)
    key = await database.write(lambda link: _mark(link, tables, experiment, now=now), order=order)

    def delete_next(connection: Connection) -> bool:
        trials = tables.trials
        some = sa.select(trials.c.trial_key).where(trials.c.experiment_key == key).limit(1)
        trial = connection.execute(some).scalar_one_or_none()
        if trial is None:
            return False
        if not delete_part(connection, trial):
            for table in (tables.sources, trials):
                connection.execute(table.delete().where(table.c.trial_key == trial))
        return True

    while await database.write(delete_next, order=order):
        pass


def _mark(connection: Connection, tables: IngestionTables, experiment_id: str, *, now: float) -> int:
    """Marks an experiment as deleted, also one that never sent anything; returns its key."""
    table = tables.experiments
    insert_new(connection, table, {"experiment_id": experiment_id})
    connection.execute(
        table.update().where(table.c.experiment_id == experiment_id, table.c.deleted_at.is_(None)),
        {"deleted_at": now},
    )
    query = sa.select(table.c.experiment_key).where(table.c.experiment_id == experiment_id)
    return int(connection.execute(query).scalar_one())
