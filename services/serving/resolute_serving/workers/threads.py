"""Threads for calls that may block for long, separate from those of other work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from resolute.errors import UnavailableError

T = TypeVar("T")


class BoundedThreads:
    """A few named threads without a queue. Close it after use.

    Args:
        name: Prefix of the names of the threads.
        threads: Largest number of calls at the same time. A call counts until it ends, even if its caller is
            gone.
    """

    def __init__(self, name: str, *, threads: int) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._free = threading.Semaphore(threads)

    async def run(self, call: Callable[[], T]) -> T:
        """Makes a call in a thread and returns its result.

        Raises:
            UnavailableError: All threads are busy, or the service stops.
        """
        if not self._free.acquire(blocking=False):
            raise UnavailableError("too many such calls at the same time; try again in some seconds")
        try:
            future = self._executor.submit(call)
        except RuntimeError:
            self._free.release()
            raise UnavailableError("the service stops; try again") from None
        future.add_done_callback(lambda _: self._free.release())
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Takes no more calls; those in progress end by themselves."""
        self._executor.shutdown(wait=False, cancel_futures=True)
