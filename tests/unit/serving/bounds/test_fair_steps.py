"""People's calls run some steps in each pass of the event loop, and what runs do comes between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from resolute_serving.bounds.fair_steps import FairSteps

STEPS = 50


async def stepping(log: list[str], name: str, *, steps: int = STEPS) -> str:
    for _ in range(steps):
        log.append(name)
        await asyncio.sleep(0)
    return name


def test_a_run_among_thousands_of_calls_of_people_gets_a_step_in_each_pass() -> None:
    async def scenario() -> None:
        steps, log = FairSteps(most=4), list[str]()
        people = [
            asyncio.create_task(steps.run(stepping(log, "person", steps=5), of=number))
            for number in range(1000)
        ]
        await asyncio.sleep(0)
        began = len(log)
        await stepping(log, "run")
        assert log[began:].count("person") <= 4 * (STEPS + 1)
        assert await asyncio.gather(*people) == ["person"] * 1000

    asyncio.run(scenario())


def test_a_person_with_few_calls_does_not_wait_for_another_with_many() -> None:
    async def scenario() -> None:
        steps, log = FairSteps(most=2), list[str]()
        many = [asyncio.create_task(steps.run(stepping(log, "bob"), of="bob")) for _ in range(1000)]
        await asyncio.sleep(0)
        began = len(log)
        await steps.run(stepping(log, "ada"), of="ada")
        # A step, its wait and the next turn take her three passes, and bob as many times two steps.
        assert log[began:].count("bob") <= 3 * 2 * (STEPS + 1)
        for task in many:
            task.cancel()
        await asyncio.gather(*many, return_exceptions=True)

    asyncio.run(scenario())


async def _failed() -> None:
    raise ValueError("a defect")


async def _awaits_failure() -> str:
    try:
        await asyncio.ensure_future(_failed())
    except ValueError as error:
        return f"saw {error}"
    return "saw nothing"


async def _in_time() -> str:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().call_soon(task.cancel)
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        return "ran out of time"
    return "slept"


@pytest.mark.parametrize(
    ("work", "result"), [(_awaits_failure, "saw a defect"), (_in_time, "ran out of time")]
)
def test_failures_and_cancellations_reach_the_place_that_waits(
    work: Callable[[], Coroutine[Any, Any, str]], result: str
) -> None:
    assert asyncio.run(FairSteps(most=1).run(work(), of="ada")) == result


def test_what_a_call_raises_comes_out_and_is_kept_by_nobody() -> None:
    async def scenario() -> None:
        steps = FairSteps()
        with pytest.raises(ValueError, match="a defect"):
            await steps.run(_failed(), of="ada")
        assert await steps.run(stepping([], "ada"), of="ada") == "ada"

    asyncio.run(scenario())


def test_a_call_that_is_cancelled_while_it_waits_for_its_step_cleans_up_at_once() -> None:
    async def scenario() -> None:
        steps, log = FairSteps(most=1), list[str]()

        async def cleaning() -> None:
            try:
                await stepping(log, "cancelled", steps=10_000)
            finally:
                log.append("cleaned")

        busy = [asyncio.create_task(steps.run(stepping(log, "busy"), of="bob")) for _ in range(100)]
        cancelled = asyncio.create_task(steps.run(cleaning(), of="ada"))
        while "cancelled" not in log:  # noqa: ASYNC110 - passes of the loop are what is waited for
            await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        assert "cleaned" in log
        assert await asyncio.gather(*busy) == ["busy"] * 100

    asyncio.run(scenario())


def test_a_call_within_a_call_has_one_step_a_turn() -> None:
    async def scenario() -> None:
        steps, passes = FairSteps(most=1), [0]
        loop = asyncio.get_running_loop()

        def count() -> None:
            passes[0] += 1
            loop.call_soon(count)

        count()
        crowd = [asyncio.create_task(steps.run(stepping([], "x", steps=200), of="bob")) for _ in range(3)]
        await steps.run(steps.run(stepping([], "ada"), of="ada"), of="ada")
        # Three passes a step, and not five.
        assert passes[0] <= 4 * STEPS
        await asyncio.gather(*crowd)

    asyncio.run(scenario())
