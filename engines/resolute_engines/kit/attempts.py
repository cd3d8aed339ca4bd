"""Applies an operation to many items. The failure of one does not stop the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def try_each(work: Callable[[T], Awaitable[None]], things: Iterable[T], *, at_once: int = 8) -> None:
    """Does something to each thing, also if it fails for others; their failure is raised after that.

    Args:
        work: What is done.
        things: To which, in this order.
        at_once: To how many at a time: each may take seconds, and nothing else goes on meanwhile.

    Raises:
        Exception: What failed for the first one that it failed for.
    """
    places = asyncio.Semaphore(at_once)

    async def one(thing: T) -> None:
        async with places:
            await work(thing)

    answers = await asyncio.gather(*map(one, things), return_exceptions=True)
    for failure in filter(None, answers):
        raise failure
