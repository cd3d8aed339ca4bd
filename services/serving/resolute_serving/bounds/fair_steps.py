"""Turns on the event loop for people's calls, so that the calls of runs need not wait for all of them.

asyncio runs steps in the order in which they become ready. Renewing a lease has a dozen steps. Each would
wait for a step of every stream and call that people have open, which may be thousands.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Generator, Hashable
from contextvars import ContextVar
from types import coroutine
from typing import Any, TypeVar

R = TypeVar("R")
STEPS_OF_A_PASS = 2
"""Steps of people's calls in one pass of the event loop. gRPC hands over one call in each pass: with eight
steps of a millisecond, 600 followers that began to read kept other calls waiting until gRPC dropped them."""
_task: ContextVar[asyncio.Task[Any] | None] = ContextVar("task_of_fair_steps", default=None)


class FairSteps:
    """Limits the steps of people's calls in each pass of the event loop, and takes the callers in turn.

    A step is the work of a coroutine from one wait to the next. An instance serves one event loop.

    Args:
        most: Steps of a pass.
    """

    def __init__(self, *, most: int = STEPS_OF_A_PASS) -> None:
        self._most = most
        self._left = most
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}

    async def run(self, work: Coroutine[Any, Any, R], *, of: Hashable) -> R:
        """Awaits a coroutine in the current task, with a turn for each of its steps.

        Args:
            work: Coroutine to await. Within a coroutine that takes turns already, it takes none of its own.
            of: Caller that waits for it.
        """
        task = asyncio.current_task()
        if _task.get() is task:
            return await work
        token = _task.set(task)
        try:
            return await self._stepwise(work, of)
        finally:
            _task.reset(token)

    @coroutine
    def _stepwise(self, work: Coroutine[Any, Any, R], of: Hashable) -> Generator[Any, Any, R]:
        raised: BaseException | None = None
        while True:
            # A task that is cancelled ends at once, and a generator that is closed cannot wait.
            if not (isinstance(raised, asyncio.CancelledError | GeneratorExit) or self._takes()):
                try:
                    yield from self._turn(of)
                except BaseException as error:  # noqa: BLE001 - the work receives it
                    raised = error
            try:
                awaited = work.send(None) if raised is None else work.throw(raised)
            except StopIteration as ended:
                return ended.value  # type: ignore[no-any-return]
            finally:
                raised = None  # it names the frames of the work
            try:
                yield awaited
            except BaseException as error:  # noqa: BLE001 - the work receives the failure of its wait
                raised = error

    def _takes(self) -> bool:
        """Takes one of the steps that are left, if no call waits for one."""
        if not self._left or self._waiting:
            return False
        self._left -= 1
        if not self._left:
            self._end_pass()
        return True

    def _turn(self, of: Hashable) -> Generator[Any, Any, None]:
        """Waits for a later pass. Its end is scheduled: a call waits only while no step is left."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(of, deque()).append(turn)
        yield from turn

    def _end_pass(self) -> None:
        asyncio.get_running_loop().call_soon(self._next_pass)

    def _next_pass(self) -> None:
        self._left = self._most
        while self._left and self._waiting:
            of = next(iter(self._waiting))
            queue = self._waiting.pop(of)
            turn = queue.popleft()
            if queue:
                self._waiting[of] = queue  # behind the others
            if not turn.done():
                turn.set_result(None)
                self._left -= 1
        if not self._left:
            self._end_pass()
