"""A value that is read at the first request, and again after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class ReadOnce(Generic[T]):
    """Caches the return value of a function.

    Args:
        read: Reads the value, in a thread.
    """

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._reading: asyncio.Task[T] | None = None

    async def get(self) -> T:
        """Returns it. All who ask meanwhile wait for one read, which goes on when one of them leaves."""
        reading = self._reading
        if reading is None or (reading.done() and (reading.cancelled() or reading.exception() is not None)):
            reading = self._reading = asyncio.create_task(asyncio.to_thread(self._read), name="gateway-read")
        return await asyncio.shield(reading)
