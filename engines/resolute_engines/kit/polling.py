"""Polling of engines that send no events: of runs at short intervals, of nodes at long ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from resolute.contracts.calls.deadlines import in_time
from resolute.errors import DeadlineError
from resolute_engines.protocol import CapacityChange, ContainerReport, EngineEvent, Pool


class Polling:
    """The polling of one engine, and its pools as of the last poll.

    Args:
        pools: The pools before the first poll, by name.
        look_at_runs: Returns the changes of containers since the previous poll.
        look_at_nodes: Returns the current pools.
        seconds: Time between two polls of the runs.
        looks_a_capacity: Number of polls of the runs between two polls of the nodes.
    """

    def __init__(
        self,
        pools: Mapping[str, Pool],
        *,
        look_at_runs: Callable[[], Awaitable[Sequence[ContainerReport]]],
        look_at_nodes: Callable[[], Awaitable[Mapping[str, Pool]]],
        seconds: float,
        looks_a_capacity: int,
    ) -> None:
        self._pools = dict(pools)
        self._look_at_runs = look_at_runs
        self._look_at_nodes = look_at_nodes
        self._seconds = seconds
        self._looks_a_capacity = looks_a_capacity
        self._closed = asyncio.Event()

    @property
    def pools(self) -> Sequence[Pool]:
        """The pools, with the slots that nodes had at the last look."""
        return tuple(self._pools.values())

    @property
    def closed(self) -> bool:
        """Whether nothing is looked at any more."""
        return self._closed.is_set()

    async def events(self) -> AsyncGenerator[EngineEvent, None]:
        """Tells of what changed, until ``close``. A failure ends it; it may be called again."""
        looks = 0
        while not self.closed:
            if looks % self._looks_a_capacity == 0:
                changed = self._update(await self._look_at_nodes())
                if changed:
                    yield CapacityChange(pools=changed)
            looks += 1
            for report in await self._look_at_runs():
                yield report
            with suppress(DeadlineError):
                await in_time(self._closed.wait(), self._seconds, "the pause")

    def close(self) -> None:
        """Ends the looks."""
        self._closed.set()

    def _update(self, pools: Mapping[str, Pool]) -> tuple[str, ...]:
        """Takes the pools as they are now; returns the names of those that changed."""
        changed = tuple(name for name, pool in pools.items() if pool != self._pools[name])
        self._pools |= pools
        return changed
