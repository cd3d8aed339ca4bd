"""Subscribers are told which of their topics have changed, and leave nothing behind."""

from __future__ import annotations

import asyncio
import math

from resolute_serving.notifier import Notifier


def test_a_subscriber_hears_of_its_topics_only_and_of_each_change_once() -> None:
    async def scenario() -> None:
        notifier = Notifier[str]()
        with notifier.subscribe("a", "b") as both, notifier.subscribe("b") as one:
            notifier.notify("a", "b")
            notifier.notify("a", "c")
            assert await both.wait(60) == {"a", "b"}
            assert await one.wait(60) == {"b"}
            assert await both.wait(0.001) == frozenset()

    asyncio.run(scenario())


def test_a_change_ends_a_wait_that_has_begun() -> None:
    async def scenario() -> None:
        notifier = Notifier[str]()
        with notifier.subscribe("a") as changes:
            waiting = asyncio.ensure_future(changes.wait(math.inf))
            await asyncio.sleep(0)
            assert notifier.waiting == 1
            notifier.notify("a")
            assert await waiting == {"a"}
            assert notifier.waiting == 0

    asyncio.run(scenario())


def test_closing_wakes_everyone_for_good() -> None:
    async def scenario() -> None:
        notifier = Notifier[str]()
        with notifier.subscribe("a") as one, notifier.subscribe() as other:
            waiting = [asyncio.ensure_future(changes.wait(math.inf)) for changes in (one, other)]
            await asyncio.sleep(0)
            notifier.close()
            assert await asyncio.gather(*waiting) == [frozenset()] * 2
            assert await one.wait(math.inf) == frozenset()
        with notifier.subscribe("a") as late:
            assert await late.wait(math.inf) == frozenset()

    asyncio.run(scenario())


def test_a_wait_that_is_cancelled_loses_no_change() -> None:
    async def scenario() -> None:
        notifier = Notifier[str]()
        with notifier.subscribe("a") as changes:
            waiting = asyncio.ensure_future(changes.wait(math.inf))
            await asyncio.sleep(0)
            notifier.notify("a")
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            assert waiting.cancelled()
            assert await changes.wait(math.inf) == {"a"}

    asyncio.run(scenario())


def test_a_subscriber_that_leaves_leaves_nothing_behind() -> None:
    notifier = Notifier[str]()
    with notifier.subscribe("a", "a", "b"):
        notifier.notify("a")
        assert notifier.topics == {"a", "b"}
    notifier.notify("a")
    assert notifier.topics == frozenset()
