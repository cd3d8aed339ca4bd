"""Work with a deadline ends with its caller, whatever comes at the same moment."""

from __future__ import annotations

import asyncio
import gc
import logging

import pytest

from resolute.contracts.calls.deadlines import in_time
from resolute.errors import DeadlineError

TURNS = 8
"""More turns of the loop than a call takes that ends at once."""


@pytest.mark.parametrize("seconds", [None, 60.0, 0.0])
@pytest.mark.parametrize("turns", range(TURNS))
def test_a_cancellation_is_never_lost(seconds: float | None, turns: int) -> None:
    async def call(ended: asyncio.Event) -> None:
        while True:
            try:
                await in_time(ended.wait(), seconds, "the call")
            except DeadlineError:
                continue

    async def scenario() -> None:
        ended = asyncio.Event()
        caller = asyncio.create_task(call(ended))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        ended.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(caller, 60)

    asyncio.run(scenario())


def test_what_it_gives_and_raises() -> None:
    async def value() -> int:
        return 1

    async def failing() -> int:
        raise ValueError("wrong")

    async def scenario() -> None:
        assert await in_time(value(), 60, "it") == 1
        with pytest.raises(ValueError, match="wrong"):
            await in_time(failing(), 60, "it")
        with pytest.raises(DeadlineError, match="it did not end"):
            await in_time(asyncio.Event().wait(), 0.01, "it")

    asyncio.run(scenario())


def test_its_work_has_ended_when_its_caller_was_cancelled() -> None:
    ended: list[bool] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    async def scenario() -> None:
        caller = asyncio.create_task(in_time(work(), 60, "it"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert ended

    asyncio.run(scenario())


@pytest.mark.parametrize("turns", range(TURNS))
def test_work_that_fails_as_its_caller_is_cancelled_is_not_logged(
    turns: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def failing(begun: asyncio.Event) -> None:
        await begun.wait()
        raise ValueError("wrong")

    async def scenario() -> None:
        begun = asyncio.Event()
        caller = asyncio.create_task(in_time(failing(begun), 60, "it"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        begun.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        caller.cancel()
        await asyncio.gather(caller, return_exceptions=True)
        del caller
        gc.collect()

    with caplog.at_level(logging.ERROR, logger="asyncio"):
        asyncio.run(scenario())
    assert not caplog.records
