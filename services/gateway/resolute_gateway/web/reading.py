"""Files that are read once, and again where that failed."""

from __future__ import annotations

import asyncio
from typing import Any


def has_failed(reading: asyncio.Task[Any]) -> bool:
    """Whether a read has ended without a result.

    Args:
        reading: The task that reads.
    """
    return reading.done() and (reading.cancelled() or reading.exception() is not None)
