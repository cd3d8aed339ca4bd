"""One attempt that concurrent callers share, with a bounded wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from resolute.contracts.tasks import end_tasks
from resolute.errors import DeadlineError, UnavailableError

T = TypeVar("T")


class SharedAttempt(Generic[T]):
    """Runs one attempt at a time. Callers during the attempt share its result.

    A late attempt is not cancelled, because that would not end the work that it waits for, such as another
    program.

    Args:
        name: Name of its task.
        work: The work of the attempt.
        seconds: Longest wait of a caller.
        late: Message of the error after that time: the work that is late, and what to check.
    """

    def __init__(
        self, name: str, work: Callable[[], Coroutine[Any, Any, T]], *, seconds: float, late: str
    ) -> None:
        self._name = name
        self._work = work
        self._seconds = seconds
        self._late = late
        self._task: asyncio.Task[T] | None = None

    async def outcome(self) -> T:
        """Returns the result of the attempt that is under way, or of a new one.

        Raises:
            DeadlineError: It takes too long; it goes on.
            UnavailableError: This was closed.
            Exception: What the attempt raised.
        """
        task = self._task
        if task is None:
            task = self._task = asyncio.create_task(self._work(), name=self._name)
            task.add_done_callback(self._over)
        await asyncio.wait({task}, timeout=self._seconds)
        if not task.done():
            raise DeadlineError(f"{self._late} for more than {self._seconds:g} s")
        if task.cancelled():
            raise UnavailableError("the service is being stopped")
        return task.result()

    async def close(self) -> None:
        """Ends the attempt that is under way."""
        await end_tasks(self._task)

    def _over(self, task: asyncio.Task[T]) -> None:
        self._task = None
        if not task.cancelled():
            # Those who asked may all be gone.
            task.exception()
