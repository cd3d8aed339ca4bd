"""Reads the revisions of experiments, once for all watches."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

from resolute_experiments.store import experiments
from resolute_serving.database.engine import Database

_MOST = 10_000
"""Experiments of one read: databases bound the parameters of a query."""


@dataclass
class _Batch:
    ids: set[str] = field(default_factory=set)
    found: Mapping[str, int] | None = None


class Revisions:
    """Reads revisions. Callers during a read share the next read.

    Args:
        database: This service's database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._turn = asyncio.Lock()
        self._next = _Batch()

    async def read(self, ids: Collection[str]) -> Mapping[str, int]:
        """Returns the revisions of experiments, and perhaps of others.

        Args:
            ids: Their UUIDs.
        """
        if len(self._next.ids) + len(ids) > _MOST:
            self._next = _Batch()
        batch = self._next
        batch.ids.update(ids)
        async with self._turn:
            if batch is self._next:
                self._next = _Batch()
            if batch.found is None:
                batch.found = await self._database.read(partial(experiments.revisions, ids=batch.ids))
        return batch.found
