"""Removes the media of an experiment: first rows, then files, then the record of the files' places."""

from __future__ import annotations

from functools import partial

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.contracts.clock import Clock
from resolute_checkpoints.domain.checkpoint import Storage
from resolute_checkpoints.media.contents import Contents
from resolute_checkpoints.store.rows import decode_storage
from resolute_checkpoints.store.schema import MEDIA_INTAKE, media, media_places
from resolute_serving.database.engine import Database
from resolute_serving.ingestion.deletion import delete_experiment

_ROWS_AT_ONCE = 5000


class Removal:
    """Removes media.

    Args:
        database: The service's database.
        contents: Stores large contents.
        clock: Clock for the time of deletion.
    """

    def __init__(self, database: Database, contents: Contents, *, clock: Clock) -> None:
        self._database = database
        self._contents = contents
        self._clock = clock

    async def delete_experiment(self, experiment_id: str) -> None:
        """Removes all media of an experiment. After a failure, a repeated call continues.

        Raises:
            FailedPreconditionError: A store refuses the service.
            UnavailableError: A store does not answer.
        """
        await delete_experiment(
            self._database, MEDIA_INTAKE, experiment_id, clock=self._clock, delete_part=_delete_part
        )
        for key, storage in await self._database.read(lambda link: _places(link, experiment_id)):
            await self._contents.remove_all(storage, experiment_id)
            await self._database.write(partial(_forget, key=key))


def _delete_part(connection: Connection, trial: int) -> bool:
    some = sa.select(media.c.media_id).where(media.c.trial_key == trial).limit(_ROWS_AT_ONCE)
    return connection.execute(media.delete().where(media.c.media_id.in_(some))).rowcount == _ROWS_AT_ONCE


def _forget(connection: Connection, *, key: int) -> None:
    connection.execute(media_places.delete().where(media_places.c.place_key == key))


def _places(connection: Connection, experiment_id: str) -> list[tuple[int, Storage]]:
    experiments = MEDIA_INTAKE.experiments
    query = (
        sa.select(media_places.c.place_key, media_places.c.storage)
        .join(experiments, experiments.c.experiment_key == media_places.c.experiment_key)
        .where(experiments.c.experiment_id == experiment_id)
    )
    return [(row.place_key, decode_storage(row.storage)) for row in connection.execute(query)]
