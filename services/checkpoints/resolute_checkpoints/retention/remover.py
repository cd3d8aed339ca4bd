"""Removes marked files, and records the outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter

import structlog

from resolute.contracts.clock import Clock
from resolute.contracts.tasks import end_tasks
from resolute.errors import InternalError, ResoluteError
from resolute_checkpoints.blobs.factory import StoreFactory
from resolute_checkpoints.blobs.workers import BlobWorkers
from resolute_checkpoints.domain.checkpoint import Storage
from resolute_checkpoints.store.files import removals
from resolute_checkpoints.store.files.removals import Removal
from resolute_serving.database.engine import Database

CLAIM_SECONDS = 6.0
"""How long a removal belongs to anyone who took it on and does not say again that it goes on."""
_CLAIM_AGAIN_SECONDS = 2.0
_INITIAL_BACKOFF = 10.0

_log = structlog.get_logger("removal")


class Remover:
    """Carries out accepted removals.

    Args:
        database: The service's database, for the outcomes.
        stores: Opens the store of each checkpoint.
        workers: Threads of its own, so that a large removal delays no other work.
        clock: Clock for the pause after a failed attempt.
    """

    def __init__(
        self, *, database: Database, stores: StoreFactory, workers: BlobWorkers, clock: Clock
    ) -> None:
        self._database = database
        self._stores = stores
        self._workers = workers
        self._clock = clock

    async def execute(self, claimed: Sequence[Removal]) -> list[ResoluteError]:
        """Removes files and records each outcome; failed removals are retried later.

        Returns:
            What failed.
        """
        claims = asyncio.create_task(self._keep_claims(claimed), name="removal-claims")
        try:
            outcomes = await asyncio.gather(*(self._carry_out(removal) for removal in claimed))
        finally:
            await end_tasks(claims)
        return [outcome for outcome in outcomes if outcome is not None]

    async def _keep_claims(self, claimed: Sequence[Removal]) -> None:
        """Prolongs the claims, which are short so that others soon continue for a killed process."""
        while True:
            await asyncio.sleep(_CLAIM_AGAIN_SECONDS)
            until = self._clock.time() + CLAIM_SECONDS
            work = partial(removals.prolong, claimed=claimed, until=until)
            try:
                claimed = await self._database.write(work)
            except ResoluteError as failure:
                _log.warning("claims of removals could not be prolonged", reason=str(failure))

    async def remove_others(self, storage: Storage, directory: str) -> None:
        """Removes a directory outside of checkpoints, in the threads for removals."""
        await self._workers.run(lambda: self._stores.open(storage).remove_others(directory), of=storage)

    async def _carry_out(self, removal: Removal) -> ResoluteError | None:
        try:
            await self._workers.run(partial(self._erase, removal), of=removal.storage)
        except ResoluteError as error:
            await self._reschedule(removal, error)
            return error
        except Exception as error:  # noqa: BLE001 - one defect must not hold up the others
            _log.exception("a removal failed by a defect", checkpoint=removal.checkpoint_id)
            await self._reschedule(removal, error)
            return InternalError(f"checkpoint {removal.checkpoint_id} could not be removed; see the log")
        await self._database.write(lambda connection: removals.complete(connection, removal))
        return None

    def _erase(self, removal: Removal) -> None:
        store = self._stores.open(removal.storage)
        if removal.whole:
            store.remove(removal.checkpoint_id, committed=removal.committed, kept=removal.paths_in_use)
        for checkpoint_id, homes in groupby(removal.objects, key=attrgetter("checkpoint_id")):
            store.remove_files(checkpoint_id, [home.path for home in homes])
        store.drop_uploads(removal.checkpoint_id, removal.uploads)

    async def _reschedule(self, removal: Removal, error: Exception) -> None:
        pause = min(removals.LONGEST_PAUSE, _INITIAL_BACKOFF * 2 ** min(removal.attempts, 20))
        _log.warning(
            "files could not be removed",
            checkpoint=removal.checkpoint_id,
            reason=str(error),
            attempts=removal.attempts + 1,
            again_in=pause,
        )
        until = self._clock.time() + pause
        await self._database.write(lambda connection: removals.reschedule(connection, removal, until=until))
