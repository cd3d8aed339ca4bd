"""Waiting for conditions, so that no test sleeps for a time that may be too short or too long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T], *, what: str = "a condition", seconds: float = 60.0, pause: float = 0.02
) -> T:
    """Returns the first true value of ``condition``; fails if there is none within ``seconds``."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {seconds:g} s in vain for {what}"
        time.sleep(pause)
    return value


async def wait_until_async(
    condition: Callable[[], T], *, what: str = "a condition", seconds: float = 30.0, pause: float = 0.005
) -> T:
    """Like ``wait_until``, and other tasks continue during the wait."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not (value := condition()):
        assert loop.time() < deadline, f"waited {seconds:g} s in vain for {what}"
        await asyncio.sleep(pause)
    return value
