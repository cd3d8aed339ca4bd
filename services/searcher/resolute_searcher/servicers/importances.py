"""The RPC that estimates the importance of hyperparameters, for one search at a time. Results are cached."""

from __future__ import annotations

import asyncio
import importlib.util
from collections import OrderedDict
from typing import Any

from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.errors import FailedPreconditionError, QuotaError
from resolute_searcher.identifiers import canonical_uuid
from resolute_searcher.planning.answers import importance_answer
from resolute_searcher.runtime.storage import Storage
from resolute_searcher.store import search_rows
from resolute_serving.workers.pool import WorkerPool

_KEPT = 64
"""Answers that are remembered, the newest of each search; each has at most 50 names."""
MAX_WAITING = 16
"""Calls that wait for their turn."""
_NEEDED = ("optuna", "sklearn")


class ImportanceCalls:
    """Answers the call about importances. The same log gives the same estimate, so it is computed once.

    Args:
        storage: The service's database.
        pool: The worker process that computes estimates.
    """

    def __init__(self, storage: Storage, pool: WorkerPool) -> None:
        self._storage = storage
        self._pool = pool
        self._known: OrderedDict[str, service_pb.GetImportancesResponse] = OrderedDict()
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def GetImportances(
        self, request: service_pb.GetImportancesRequest, context: Any
    ) -> service_pb.GetImportancesResponse:
        """Estimates the importance of each hyperparameter for the metric, from the current log.

        Raises:
            NotFoundError: There is no such search.
            FailedPreconditionError: What it needs is not installed.
            QuotaError: It takes too long, or too many wait.
        """
        search_id = canonical_uuid(request.search_id, field="search_id")
        if (known := await self._current(search_id)) is not None:
            return known
        if missing := [name for name in _NEEDED if importlib.util.find_spec(name) is None]:
            raise FailedPreconditionError(
                f"importances of hyperparameters need {' and '.join(missing)} beside the searcher service; "
                "install resolute-train[search] there"
            )
        if self._waiting >= MAX_WAITING:
            raise QuotaError(f"{self._waiting} calls wait for importances; try again in a minute")
        self._waiting += 1
        try:
            async with self._turn:
                # The call before may have asked the same.
                return await self._current(search_id) or await self._estimate(search_id)
        finally:
            self._waiting -= 1

    async def _current(self, search_id: str) -> service_pb.GetImportancesResponse | None:
        row = await self._storage.read(lambda c: search_rows.read_search(c, search_id))
        known = self._known.get(search_id)
        return known if known is not None and known.last_event_sequence == row.last_sequence else None

    async def _estimate(self, search_id: str) -> service_pb.GetImportancesResponse:
        url = self._storage.database.url
        answer = await self._pool.run(importance_answer, url, search_id)
        response = service_pb.GetImportancesResponse.FromString(answer)
        self._known[search_id] = response
        self._known.move_to_end(search_id)
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return response
