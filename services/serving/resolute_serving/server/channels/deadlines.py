"""Ends work whose time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from resolute.errors import DeadlineError

T = TypeVar("T")


async def in_time(work: Coroutine[Any, Any, T], seconds: float | None, call: str) -> T:
    """Runs work in a task of its own, whose context is its own too, and ends it when its time is over.

    Args:
        work: What is to be done.
        seconds: How long it may take; None for no limit.
        call: What it is, for the message.

    Raises:
        DeadlineError: It did not end in time.
    """
    # Unlike wait_for of Python before 3.12, this never swallows the cancellation of its caller.
    task = asyncio.ensure_future(work)
    late = False

    def end() -> None:
        nonlocal late
        late = task.cancel()

    timer = None if seconds is None else asyncio.get_running_loop().call_later(seconds, end)
    try:
        return await task
    except asyncio.CancelledError:
        if not late:
            raise
        raise DeadlineError(f"{call} did not end within its deadline; try again") from None
    finally:
        if timer is not None:
            timer.cancel()
