"""A local resource manager in a test, the runs that it launched, and the cleaning up after it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.clusters.control_plane import ControlPlane

from resolute.contracts.files.atomic_files import read_json
from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.run.directory import RunDirectory
from resolute_engines.local.engine import LocalEngine
from resolute_engines.protocol import AllocationSpec, ContainerReport

ALLOCATION = "allocation-1"
TRAIN = "echo training; while true; do sleep 0.05; done"


def scenario(body: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(body(), 60))


def spec(plane: ControlPlane, *, placements: tuple[tuple[int, ...], ...] = ((0,),)) -> AllocationSpec:
    return AllocationSpec(
        allocation_id=ALLOCATION, placements=placements, address=plane.address, token="token-0"
    )


@asynccontextmanager
async def managing(
    path: Path, **options: Any
) -> AsyncIterator[tuple[LocalEngine, asyncio.Queue[ContainerReport]]]:
    """A manager whose reports go into a queue."""
    manager = LocalEngine(path / "runs", slots=2, **options)
    reports: asyncio.Queue[ContainerReport] = asyncio.Queue()

    async def collect() -> None:
        async for report in manager.watch():
            await reports.put(report)

    collector = asyncio.create_task(collect())
    try:
        yield manager, reports
    finally:
        await manager.close()
        await collector


@asynccontextmanager
async def cleared(path: Path) -> AsyncIterator[None]:
    """Leaves nothing running behind."""
    try:
        yield
    finally:
        manager = LocalEngine(path / "runs", slots=2)
        await manager.kill(ALLOCATION)
        await manager.close()


def run_of(path: Path, rank: int = 0) -> RunDirectory:
    return RunDirectory(path / "runs" / ALLOCATION / str(rank))


def identity(path: Path) -> ProcessIdentity:
    found = ProcessIdentity.from_json(read_json(path))
    assert found is not None
    return found


async def seen(plane: ControlPlane, condition: Callable[[], Any]) -> None:
    await asyncio.to_thread(plane.wait_for, condition)
