"""An engine whose runs are names: what their supervisors would call is made by ``simulated_runs.py``.

Each allocation is a file in the directory that RESOLUTE_BENCH_RUNS names, with the token of its run.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from resolute.contracts.documents.section import Positive, Section
from resolute_engines.protocol import (
    AllocationSpec,
    ContainerReport,
    ContainerState,
    EngineEvent,
    Pool,
    Slot,
    SlotKind,
)
from resolute_engines.settings import parse_options


class PoolOptions(Section):
    """What the settings say of a pool."""

    slots: Positive = 1


def create_engine(settings: Any, _: Any) -> SimulatedEngine:
    """Makes the engine."""
    pools = []
    for pool in settings.pools:
        slots = parse_options(PoolOptions, pool.options, at=pool.where).slots
        pools.append(Pool(name=pool.name, slots=tuple(Slot(n, SlotKind.CPU) for n in range(slots))))
    return SimulatedEngine(Path(os.environ["RESOLUTE_BENCH_RUNS"]), pools)


class SimulatedEngine:
    """Runs nothing."""

    prompt = True

    def __init__(self, folder: Path, pools: Sequence[Pool]) -> None:
        self._folder = folder
        self._pools = pools
        self._events = asyncio.Queue[EngineEvent | None]()

    def pools(self) -> Sequence[Pool]:
        """Its pools."""
        return self._pools

    async def launch(self, spec: AllocationSpec) -> None:
        """Writes down that an allocation runs."""
        part = self._folder / f".{spec.allocation_id}"
        part.write_text(spec.token)
        part.rename(self._folder / spec.allocation_id)

    async def inspect(self, allocation_id: str) -> Sequence[ContainerReport]:
        """Says that what was launched runs."""
        if not (self._folder / allocation_id).exists():
            return []
        return [ContainerReport(allocation_id=allocation_id, container_rank=0, state=ContainerState.RUNNING)]

    async def stop(self, allocation_id: str, *, grace: float) -> None:
        """Ends an allocation."""
        await self.kill(allocation_id)

    async def kill(self, allocation_id: str) -> None:
        """Ends an allocation."""
        (self._folder / allocation_id).unlink(missing_ok=True)
        await self._events.put(
            ContainerReport(allocation_id=allocation_id, container_rank=0, state=ContainerState.ENDED)
        )

    async def release(self, allocation_id: str, *, token: str = "") -> None:
        """Forgets an allocation."""
        (self._folder / allocation_id).unlink(missing_ok=True)

    async def leftovers(self) -> Sequence[str]:
        """What is written down."""
        return [path.name for path in self._folder.iterdir() if not path.name.startswith(".")]

    async def watch(self) -> AsyncIterator[EngineEvent]:
        """Tells what ended."""
        while (event := await self._events.get()) is not None:
            yield event

    async def close(self) -> None:
        """Ends `watch`."""
        await self._events.put(None)
