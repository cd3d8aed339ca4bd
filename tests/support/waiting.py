"""Waits for conditions, so that no test sleeps for a time that may be too short or too long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], bool], *, seconds: float = 10.0, pause: float = 0.005) -> None:
    """Returns once ``condition`` holds; fails if it does not within ``seconds``."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not condition():
        assert loop.time() < deadline, f"not so after {seconds} s"
        await asyncio.sleep(pause)
