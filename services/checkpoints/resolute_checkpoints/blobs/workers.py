"""Threads for work on stores, which may block for as long as a file system does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import BinaryIO, TypeVar

from resolute.errors import UnavailableError

T = TypeVar("T")


class BlobWorkers:
    """A few threads of a name.

    Args:
        name: Begins the names of the threads.
        threads: How many there are.
    """

    def __init__(self, *, name: str, threads: int) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def run(self, work: Callable[[], T]) -> T:
        """Runs work in a thread and returns its result.

        Raises:
            UnavailableError: The service stops.
        """
        return await asyncio.wrap_future(self._submit(work))

    async def open(self, work: Callable[[], BinaryIO]) -> BinaryIO:
        """Runs work that opens a stream; the stream is closed if its caller is gone."""
        future = self._submit(work)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            future.add_done_callback(_close_result)
            raise

    def close_later(self, stream: BinaryIO) -> None:
        """Closes a stream in a thread: a read may be under way there, and is waited for."""
        try:
            closing = self._executor.submit(stream.close)
        except RuntimeError:
            stream.close()
        else:
            closing.add_done_callback(lambda future: stream.close() if future.cancelled() else None)

    def close(self) -> None:
        """Lets the work under way end, drops what has not begun. Blocks until then."""
        self._executor.shutdown(cancel_futures=True)

    def _submit(self, work: Callable[[], T]) -> Future[T]:
        try:
            return self._executor.submit(work)
        except RuntimeError as error:
            raise UnavailableError("the checkpoints service stops; try again") from error


def _close_result(future: Future[BinaryIO]) -> None:
    if not future.cancelled() and future.exception() is None:
        future.result().close()
