"""Work that is repeated: when it is done, what ends it, and what a failure does to it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine
from typing import Any

import structlog
from support.waiting import wait_until_async

from resolute.contracts.calls.logged_backoff import LoggedBackoff
from resolute_serving.notifier import Notifier
from resolute_serving.repetition import PeriodicTask, repeat


def failures() -> LoggedBackoff:
    return LoggedBackoff(structlog.get_logger("test"), "the work failed", longest=0.001)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, timeout=60))


def test_work_is_done_after_its_pause_and_after_failures_until_nothing_is_left() -> None:
    answers = iter([0.001, RuntimeError("a defect"), 0.0, None])
    done = []

    async def work() -> float | None:
        answer = next(answers)
        done.append(answer)
        if isinstance(answer, Exception):
            raise answer
        return answer

    run(repeat(work, notifier=Notifier[str](), failures=failures()))
    assert len(done) == 4


def test_a_change_ends_the_pause_and_a_stop_ends_the_work() -> None:
    async def scenario() -> None:
        notifier, count = Notifier[str](), 0

        async def work() -> float:
            nonlocal count
            count += 1
            return math.inf

        repeated = asyncio.ensure_future(repeat(work, notifier=notifier, topics=["a"], failures=failures()))
        await wait_until_async(lambda: notifier.waiting == 1, pause=0)
        notifier.notify("b")
        notifier.notify("a")
        await wait_until_async(lambda: count == 2, pause=0)
        notifier.close()
        await repeated
        assert count == 2

    run(scenario())


def test_a_periodic_task_is_woken_and_stopped() -> None:
    async def scenario() -> None:
        count = 0

        async def work() -> None:
            nonlocal count
            count += 1
            if count == 1:
                raise RuntimeError("a defect")

        task = PeriodicTask(work, name="test-work", seconds=3600, failures=failures())
        await task.stop()
        task.start()
        await wait_until_async(lambda: count == 2, pause=0.001)
        task.wake()
        await wait_until_async(lambda: count == 3, pause=0.001)
        await task.stop()
        assert not [one for one in asyncio.all_tasks() if one.get_name() == "test-work"]

    run(scenario())
