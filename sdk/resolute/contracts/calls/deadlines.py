"""Cancels work at its deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from resolute.errors import DeadlineError

T = TypeVar("T")


async def in_time(work: Awaitable[T], seconds: float | None, call: str) -> T:
    """Runs work in a task of its own, whose context is its own too, and ends it when its time is over.

    Unlike ``wait_for`` of Python before 3.12, it never loses the cancellation of its caller, whatever comes
    at the same time. What the work returned then is lost: not for work that takes something to be given back.

    Args:
        work: What is to be done.
        seconds: How long it may take; None for no limit.
        call: What it is, for the message.

    Raises:
        DeadlineError: It did not end in time.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait([task], timeout=seconds)
        late = task.cancel()
        if late:
            await asyncio.wait([task])
        if late and task.cancelled():
            raise DeadlineError(f"{call} did not end within its deadline; try again")
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        elif not task.cancelled():
            task.exception()  # which asyncio logs otherwise, where the caller was cancelled at that moment
        # Its error names this frame, and the frame would name the error: what the work held would stay.
        del task
