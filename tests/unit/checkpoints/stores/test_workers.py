"""Threads for stores: one that hangs takes at most half of them, and what waits for it can be given up."""

from __future__ import annotations

import asyncio
import threading

import pytest

from resolute_checkpoints.blobs.workers import BlobWorkers
from resolute_checkpoints.domain.checkpoint import DirectoryStorage

DEAD, ALIVE = DirectoryStorage("/mnt/dead"), DirectoryStorage("/mnt/alive")
SECONDS = 60.0


def test_a_store_that_hangs_holds_up_no_other() -> None:
    answers, began = threading.Event(), threading.Semaphore(0)

    def hang() -> None:
        began.release()
        assert answers.wait(SECONDS)

    async def scenario() -> None:
        workers = BlobWorkers(name="blobs", threads=4)
        stuck = [asyncio.create_task(workers.run(hang, of=DEAD)) for _ in range(10)]
        for _ in range(2):
            assert await asyncio.to_thread(began.acquire, timeout=SECONDS)
        try:
            assert await asyncio.wait_for(workers.run(lambda: 7, of=ALIVE), SECONDS) == 7
            # Callers that are gone, as at the deadline of their calls, make no room for more that hangs.
            for task in stuck:
                task.cancel()
            await asyncio.gather(*stuck, return_exceptions=True)
            again = [asyncio.create_task(workers.run(hang, of=DEAD)) for _ in range(10)]
            assert await asyncio.wait_for(workers.run(lambda: 8, of=ALIVE), SECONDS) == 8
            assert not began.acquire(blocking=False)
        finally:
            answers.set()
        await asyncio.wait_for(asyncio.gather(*again), SECONDS)
        await asyncio.to_thread(workers.close)

    asyncio.run(scenario())


def test_a_failure_gives_its_share_back() -> None:
    def fail() -> None:
        raise OSError("no such directory")

    async def scenario() -> None:
        workers = BlobWorkers(name="blobs", threads=2)
        for _ in range(5):
            with pytest.raises(OSError, match="no such directory"):
                await asyncio.wait_for(workers.run(fail, of=DEAD), SECONDS)
        await asyncio.to_thread(workers.close)

    asyncio.run(scenario())
