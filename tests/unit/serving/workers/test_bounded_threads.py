"""Threads for calls that may block for long."""

from __future__ import annotations

import asyncio
import threading

import pytest

from resolute.errors import UnavailableError
from resolute_serving.workers.threads import BoundedThreads


async def run_when_free(threads: BoundedThreads) -> int:
    while True:
        try:
            return await threads.run(int)
        except UnavailableError:
            await asyncio.sleep(0.005)


def test_a_call_that_nobody_waits_for_holds_its_thread_until_it_ends() -> None:
    async def scenario() -> None:
        threads = BoundedThreads("test-bounded", threads=1)
        begun, ended = threading.Event(), threading.Event()

        def block() -> None:
            begun.set()
            assert ended.wait(60)

        waiting = asyncio.create_task(threads.run(block))
        await asyncio.to_thread(begun.wait, 60)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        with pytest.raises(UnavailableError, match="too many such calls"):
            await threads.run(int)
        ended.set()
        assert await asyncio.wait_for(run_when_free(threads), 60) == 0
        threads.close()
        with pytest.raises(UnavailableError, match="stops"):
            await threads.run(int)

    asyncio.run(scenario())
