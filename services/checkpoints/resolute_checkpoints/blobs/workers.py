"""Threads for work on stores, which may block as long as a file system does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import BinaryIO, TypeVar
from weakref import WeakValueDictionary

from resolute.errors import UnavailableError

T = TypeVar("T")


class BlobWorkers:
    """A few named threads. One storage uses at most half of them, because it may hang for ever.

    Args:
        name: Prefix of the names of the threads.
        threads: Number of threads.
    """

    def __init__(self, *, name: str, threads: int) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self.share = max(1, threads // 2)
        """Most threads of one storage."""
        self._shares: WeakValueDictionary[object, asyncio.Semaphore] = WeakValueDictionary()

    async def run(self, work: Callable[[], T], *, of: object) -> T:
        """Runs work in a thread and returns its result.

        Args:
            work: The work.
            of: The storage that it asks; while that has its share of the threads, the work waits.

        Raises:
            UnavailableError: The service stops.
        """
        return await asyncio.wrap_future(await self._submit(work, of))

    async def open(self, work: Callable[[], BinaryIO], *, of: object) -> BinaryIO:
        """Runs work that opens a stream; closes the stream if its caller was cancelled."""
        future = await self._submit(work, of)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            future.add_done_callback(_close_result)
            raise

    def close_later(self, stream: BinaryIO) -> None:
        """Closes a stream in a thread, after a read in progress."""
        try:
            closing = self._executor.submit(stream.close)
        except RuntimeError:
            stream.close()
        else:
            closing.add_done_callback(lambda future: stream.close() if future.cancelled() else None)

    def close(self) -> None:
        """Waits for running work, and drops work that has not begun."""
        self._executor.shutdown(cancel_futures=True)

    async def _submit(self, work: Callable[[], T], of: object) -> Future[T]:
        share = self._shares.setdefault(of, asyncio.Semaphore(self.share))
        await share.acquire()
        try:
            future = self._executor.submit(work)
        except RuntimeError as error:
            share.release()
            raise UnavailableError("the checkpoints service stops; try again") from error
        loop = asyncio.get_running_loop()

        def release(_: Future[T]) -> None:
            # Not when the caller is gone: the thread may be stuck for longer. A loop may be closed by then.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(share.release)

        future.add_done_callback(release)
        return future


def _close_result(future: Future[BinaryIO]) -> None:
    if not future.cancelled() and future.exception() is None:
        future.result().close()
