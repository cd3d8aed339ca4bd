"""A few worker processes, shared fairly among callers."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from resolute.errors import QuotaError, UnavailableError
from resolute_serving.workers.process import WorkerLimits, WorkerProcess

T = TypeVar("T")
MAX_WAITING = 64
"""Most tasks that wait for a process of a pool."""
MAX_WAITING_OF_CALLER = 8
"""Most of them that are of one caller."""


@dataclass(eq=False, slots=True)
class _Waiter:
    caller: str
    turn: asyncio.Future[WorkerProcess]


class WorkerPool:
    """Runs functions in processes. A task ends when its caller stops waiting.

    A named caller has one process at a time, so many calls of one caller do not delay others for long.

    Args:
        name: Name of the threads that wait for the processes.
        processes: Number of processes. Each is started with its first task.
        limits: Bounds of each task.
    """

    def __init__(self, name: str, *, processes: int, limits: WorkerLimits) -> None:
        self._idle = [WorkerProcess(limits) for _ in range(processes)]
        self._all = tuple(self._idle)
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix=f"{name}-worker")
        self._running: Counter[str] = Counter()
        self._waiting: list[_Waiter] = []
        self._closed = False

    async def run(self, work: Callable[..., T], *arguments: Any, caller: str = "") -> T:
        """Runs a function in a process; when the caller gives up, the process is killed.

        Args:
            work: A function of a module; it, its arguments and its result can be pickled.
            arguments: Its arguments.
            caller: Who asks; empty for the service itself, which is not bound to one process.

        Raises:
            QuotaError: The task exceeds its limits, or too many wait.
            UnavailableError: The processes died, or the service stops.
            Exception: What the function raised.
        """
        async with self._worker(caller) as worker:
            stopped = threading.Event()
            task = asyncio.get_running_loop().run_in_executor(
                self._threads, worker.run, work, arguments, stopped
            )
            try:
                result: T = await asyncio.shield(task)
            except asyncio.CancelledError:
                stopped.set()
                worker.kill()
                with contextlib.suppress(Exception):
                    await task
                raise
            finally:
                # Its error names this frame, and the frame would name the error: the arguments would stay.
                del task
            return result

    async def close(self) -> None:
        """Kills the processes, whatever they do. Idempotent."""
        self._closed = True
        for waiter in self._waiting:
            if not waiter.turn.done():
                waiter.turn.set_exception(_stopping())
        for worker in self._all:
            worker.close()
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)
        for worker in self._all:
            worker.wait()

    @contextlib.asynccontextmanager
    async def _worker(self, caller: str) -> AsyncIterator[WorkerProcess]:
        self._require_open()
        worker = self._take(caller) if self._may_run(caller) else await self._turn(caller)
        try:
            yield worker
        finally:
            self._give(worker, caller)

    async def _turn(self, caller: str) -> WorkerProcess:
        """Waits until a task of the caller may run."""
        own = sum(waiter.caller == caller for waiter in self._waiting)
        if caller and own >= MAX_WAITING_OF_CALLER:
            raise QuotaError(f"{own} calls of {caller} wait for a worker process; wait until they end")
        if len(self._waiting) >= MAX_WAITING:
            raise QuotaError(f"{MAX_WAITING} calls wait for a worker process; try again later")
        waiter = _Waiter(caller, asyncio.get_running_loop().create_future())
        self._waiting.append(waiter)
        try:
            return await waiter.turn
        except asyncio.CancelledError:
            if waiter.turn.done() and not waiter.turn.cancelled() and waiter.turn.exception() is None:
                self._give(waiter.turn.result(), caller)
            raise
        finally:
            if waiter in self._waiting:
                self._waiting.remove(waiter)

    def _may_run(self, caller: str) -> bool:
        return bool(self._idle) and (not caller or not self._running[caller])

    def _take(self, caller: str) -> WorkerProcess:
        self._running[caller] += 1
        return self._idle.pop()

    def _give(self, worker: WorkerProcess, caller: str) -> None:
        self._idle.append(worker)
        self._running[caller] -= 1
        if not self._running[caller]:
            del self._running[caller]
        for waiter in list(self._waiting):
            if not waiter.turn.done() and self._may_run(waiter.caller):
                self._waiting.remove(waiter)
                waiter.turn.set_result(self._take(waiter.caller))

    def _require_open(self) -> None:
        if self._closed:
            raise _stopping()


def _stopping() -> UnavailableError:
    return UnavailableError("the service stops; try again")
