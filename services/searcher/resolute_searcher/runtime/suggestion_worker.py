"""Computes the suggestions that searches request, and records them."""

from __future__ import annotations

import asyncio
import contextlib

import structlog

from resolute.errors import FailedPreconditionError, NotFoundError, UnavailableError
from resolute_searcher.methods.base import SuggestionRequest
from resolute_searcher.runtime.live_searches import Change, LiveSearches
from resolute_searcher.runtime.optuna_sampler import suggest
from resolute_searcher.runtime.storage import Storage
from resolute_searcher.store import search_rows
from resolute_serving.workers.pool import WorkerPool

_log = structlog.get_logger("searcher")


class SuggestionWorker:
    """Answers one request of each search at a time, in tasks of its own.

    Several servers may answer the same request. Their answers are equal, and the log accepts the first.

    Args:
        storage: The service's database, for specs.
        searches: The searches in memory.
        pool: Worker processes for the calculations.
    """

    def __init__(self, storage: Storage, searches: LiveSearches, pool: WorkerPool) -> None:
        self._storage = storage
        self._searches = searches
        self._pool = pool
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def notify(self, search_id: str) -> None:
        """Starts to answer the open requests of a search, if it has any."""
        if search_id in self._tasks:
            return
        task = asyncio.create_task(self._answer(search_id), name=f"searcher-answer-{search_id}")
        self._tasks[search_id] = task
        task.add_done_callback(lambda done: self._end(search_id, done))

    async def close(self) -> None:
        """Stops. Unanswered requests are repeated when their search is next loaded."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _answer(self, search_id: str) -> None:
        while (request := await self._next_request(search_id)) is not None:
            spec = await self._storage.read(lambda c: search_rows.read_search(c, search_id).spec)
            answer = await self._pool.run(suggest, spec.SerializeToString(), request)
            if answer.failure:
                _log.warning("suggestion failed", search=search_id, number=answer.number, why=answer.failure)

            def record(change: Change) -> None:
                change.record(answer)  # noqa: B023 - it runs before the next turn

            # Another server was first, or the search ended.
            with contextlib.suppress(FailedPreconditionError):
                await self._searches.change(search_id, record)

    async def _next_request(self, search_id: str) -> SuggestionRequest | None:
        return await self._searches.change(search_id, lambda change: change.search.state.suggestion_request())

    def _end(self, search_id: str, task: asyncio.Task[None]) -> None:
        self._tasks.pop(search_id, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None and not isinstance(error, NotFoundError | UnavailableError):
            _log.error("answering failed", search=search_id, exc_info=error)
