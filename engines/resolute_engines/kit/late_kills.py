"""Kills allocations that do not end within their grace period."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from resolute.contracts.calls.logged_backoff import LoggedBackoff, until_it_succeeds
from resolute_engines.kit.named_tasks import NamedTasks

_log = structlog.get_logger("engine")


class LateKills:
    """Waits for the grace period of allocations that were asked to end, and then kills them.

    Args:
        engine: Name of the kind of engine, shown in dumps of a running process.
        kill: Ends an allocation at once. It is repeated until it succeeds.
    """

    def __init__(self, engine: str, kill: Callable[[str], Awaitable[None]]) -> None:
        self._engine = engine
        self._tasks = NamedTasks(f"{engine}-kill")
        self._kill = kill

    def plan(self, allocation_id: str, *, grace: float) -> None:
        """Kills an allocation after ``grace`` seconds; while one is planned, another changes nothing."""
        self._tasks.start(allocation_id, self._kill_after(allocation_id, grace))

    def drop(self, allocation_id: str) -> None:
        """Forgets an allocation: it has ended."""
        self._tasks.cancel(allocation_id)

    async def close(self) -> None:
        """Forgets all of them. They go on until somebody else ends them."""
        await self._tasks.close()

    async def _kill_after(self, allocation_id: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        backoff = LoggedBackoff(
            _log, "a run could not be ended", engine=self._engine, allocation=allocation_id
        )
        await until_it_succeeds(lambda: self._kill(allocation_id), backoff)
