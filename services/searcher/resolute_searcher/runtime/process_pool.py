"""Processes for work that takes long on a processor, so that no call waits behind it."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from resolute.errors import UnavailableError

T = TypeVar("T")
_NICE = 10


class ProcessPool:
    """A few processes, started with the first work and ended by `close`.

    They are spawned, never forked: the service has threads.

    Args:
        processes: How many.
    """

    def __init__(self, processes: int = 2) -> None:
        self._processes = processes
        self._pool: ProcessPoolExecutor | None = None
        self._closed = False

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """Runs a function of a module in a process of its own; once more if the process dies.

        Args:
            work: The function; it, its arguments and its result can be pickled.
            arguments: Its arguments.

        Raises:
            UnavailableError: The processes die again, or the service stops.
        """
        for _ in range(2):
            if self._closed:
                raise UnavailableError("the searcher stops; try again")
            pool = self._pool or self._start()
            try:
                return await asyncio.get_running_loop().run_in_executor(pool, work, *arguments)
            except BrokenProcessPool:
                if self._pool is pool:
                    self._pool = None
                    pool.shutdown(wait=False)
        raise UnavailableError("a worker process of the searcher died twice, perhaps for lack of memory")

    def close(self) -> None:
        """Ends the processes; work that has begun is waited for. Idempotent."""
        self._closed = True
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def _start(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(self._processes, mp_context=context, initializer=_prepare)
        return self._pool


def _prepare() -> None:
    # Signals of the terminal are the service's to answer, and calls come before calculations.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICE)
