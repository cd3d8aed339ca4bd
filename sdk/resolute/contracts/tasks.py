"""The end of asyncio tasks."""

from __future__ import annotations

import asyncio
from typing import Any


async def end_tasks(*tasks: asyncio.Task[Any] | None) -> None:
    """Cancels tasks and waits for their ends, whatever their results; None is a task that never began."""
    begun = [task for task in tasks if task is not None]
    for task in begun:
        task.cancel()
    await asyncio.gather(*begun, return_exceptions=True)
