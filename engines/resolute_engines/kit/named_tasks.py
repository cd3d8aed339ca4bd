"""Named tasks, of which at most one of each name runs at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog

from resolute.contracts.tasks import end_tasks

_log = structlog.get_logger("engine")


class NamedTasks:
    """The tasks of one owner, which cancels them.

    Args:
        prefix: Prefix of the names of the tasks, shown in dumps of a running process.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def names(self) -> frozenset[str]:
        """Names of the tasks that run."""
        return frozenset(self._tasks)

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Starts a task, unless one of its name runs. If it fails, the log says so."""
        if name in self._tasks:
            work.close()
            return
        task = asyncio.create_task(work, name=f"{self._prefix}-{name}")
        self._tasks[name] = task
        task.add_done_callback(lambda ended: self._ended(name, ended))

    def cancel(self, name: str) -> None:
        """Ends a task, if it runs."""
        if task := self._tasks.pop(name, None):
            task.cancel()

    async def close(self) -> None:
        """Ends all tasks, and waits for them."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        await end_tasks(*tasks)

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(name) is task:
            del self._tasks[name]
        if not task.cancelled() and task.exception() is not None:
            _log.error("a task for a run failed", task=task.get_name(), exc_info=task.exception())
