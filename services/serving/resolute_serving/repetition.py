"""Periodic work of a running service."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import TypeVar

from resolute.contracts.calls.logged_backoff import LoggedBackoff
from resolute.contracts.tasks import end_tasks
from resolute_serving.notifier import Notifier

K = TypeVar("K", bound=Hashable)


async def repeat(
    work: Callable[[], Awaitable[float | None]],
    *,
    notifier: Notifier[K],
    topics: Iterable[K] = (),
    failures: LoggedBackoff,
) -> None:
    """Does work whenever something changed or a pause is over, until the service stops.

    Args:
        work: Returns the seconds until it is done again without a request; None when nothing is left to do.
            Whatever it raises, it is done again: a defect must not end it for good.
        notifier: Tells of changes, and of the stop.
        topics: The changes that end a pause.
        failures: Backoff after failures, which names the work in the log.
    """
    with notifier.subscribe(*topics) as changes:
        while not notifier.closed:
            try:
                pause = await work()
            except Exception as failure:  # noqa: BLE001 - the log has it
                await changes.wait(failures.failed(failure))
                continue
            failures.succeeded()
            if pause is None:
                return
            await changes.wait(pause)


class PeriodicTask:
    """Work that a task of its own repeats, from ``start`` to ``stop``.

    Args:
        work: The work.
        name: Name of the task.
        seconds: Seconds between the end of one repetition and the next.
        failures: Backoff after failures, which names the work in the log.
    """

    def __init__(
        self, work: Callable[[], Awaitable[object]], *, name: str, seconds: float, failures: LoggedBackoff
    ) -> None:
        self._work = work
        self._name = name
        self._seconds = seconds
        self._failures = failures
        self._notifier = Notifier[str]()
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Ends the present pause: there is something to do."""
        self._notifier.notify(self._name)

    def start(self) -> None:
        """Begins."""
        repeated = repeat(self._once, notifier=self._notifier, topics=[self._name], failures=self._failures)
        self._task = asyncio.create_task(repeated, name=self._name)

    async def stop(self) -> None:
        """Ends it, wherever it is."""
        await end_tasks(self._task)

    async def _once(self) -> float:
        await self._work()
        return self._seconds
