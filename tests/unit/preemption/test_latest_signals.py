from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Any

from support.waiting import wait_until_async

from resolute.api.preemption.v1.signal_pb2 import Signal
from resolute.contracts.clock import SYSTEM_CLOCK
from resolute_preemption.latest_signals import LatestSignals, SignalChange, Subscription

PATIENT = 60.0


def signal(revision: int, *, allocation_id: str = "a", preempt: bool = True) -> Signal:
    return Signal(allocation_id=allocation_id, revision=revision, preempt=preempt)


async def watch_one(
    signals: LatestSignals, allocation_id: str, *, after: int
) -> AsyncGenerator[Signal | None, None]:
    """Watches one allocation."""
    async with aclosing(signals.watch([Subscription("key", allocation_id, after)])) as changes:
        async for change in changes:
            yield None if change is None else change.signal


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, timeout=60))


async def settled(signals: LatestSignals, watchers: int) -> None:
    """Lets tasks run until so many watchers wait."""
    await wait_until_async(lambda: signals.watchers == watchers, pause=0)


def test_a_signal_that_stands_is_given_at_once() -> None:
    async def scenario() -> None:
        signals = LatestSignals(heartbeat=PATIENT, clock=SYSTEM_CLOCK)
        signals.replace([signal(3)])
        watch = watch_one(signals, "a", after=0)
        assert await anext(watch) == signal(3)

    run(scenario())


def test_a_revision_that_was_seen_is_not_given_again() -> None:
    async def scenario() -> None:
        signals = LatestSignals(heartbeat=PATIENT, clock=SYSTEM_CLOCK)
        signals.replace([signal(3)])
        watch = watch_one(signals, "a", after=3)
        assert await anext(watch) is None
        following = asyncio.ensure_future(anext(watch))
        await settled(signals, 1)
        signals.update([signal(3)])
        signals.update([signal(4)])
        assert await following == signal(4)

    run(scenario())


def test_an_allocation_that_is_not_known_is_waited_for() -> None:
    async def scenario() -> None:
        signals = LatestSignals(heartbeat=PATIENT, clock=SYSTEM_CLOCK)
        watch = watch_one(signals, "a", after=0)
        assert await anext(watch) is None
        following = asyncio.ensure_future(anext(watch))
        await settled(signals, 1)
        signals.update([signal(1, allocation_id="b")])
        await asyncio.sleep(0)
        assert not following.done()
        signals.update([signal(1)])
        assert await following == signal(1)

    run(scenario())


def test_only_the_last_of_several_changes_counts() -> None:
    async def scenario() -> None:
        signals = LatestSignals(heartbeat=PATIENT, clock=SYSTEM_CLOCK)
        watch = watch_one(signals, "a", after=0)
        assert await anext(watch) is None
        following = asyncio.ensure_future(anext(watch))
        await settled(signals, 1)
        signals.update([signal(1), signal(2)])
        signals.update([signal(3, preempt=False)])
        assert await following == signal(3, preempt=False)

    run(scenario())


def test_a_change_while_the_watcher_is_busy_is_not_lost() -> None:
    async def scenario() -> None:
        signals = LatestSignals(heartbeat=PATIENT, clock=SYSTEM_CLOCK)
        signals.update([signal(1)])
        watch = watch_one(signals, "a", after=0)
        assert await anext(watch) == signal(1)
        signals.update([signal(2)])
        assert await anext(watch) == signal(2)

    run(scenario())


def test_an_older_revision_never_replaces_a_newer_one() -> None:
    async def scenario() -> None:
        signals = LatestSignals(heartbeat=PATIENT, clock=SYSTEM_CLOCK)
        signals.update([signal(5)])
        signals.update([signal(4, preempt=False)])
        assert await anext(watch_one(signals, "a", after=0)) == signal(5)

    run(scenario())


def test_a_reset_forgets_what_is_not_in_it_and_watchers_go_on_waiting() -> None:
    async def scenario() -> None:
        signals = LatestSignals(heartbeat=PATIENT, clock=SYSTEM_CLOCK)
        signals.replace([signal(1), signal(7, allocation_id="b")])
        watch = watch_one(signals, "b", after=7)
        assert await anext(watch) is None
        following = asyncio.ensure_future(anext(watch))
        await settled(signals, 1)
        signals.replace([signal(1)])
        assert await anext(watch_one(signals, "b", after=0)) is None
        signals.replace([signal(1), signal(8, allocation_id="b")])
        assert await following == signal(8, allocation_id="b")

    run(scenario())


def test_a_reset_counts_even_where_it_goes_back() -> None:
    async def scenario() -> None:
        signals = LatestSignals(heartbeat=PATIENT, clock=SYSTEM_CLOCK)
        signals.replace([signal(9)])
        signals.replace([signal(2)])
        assert await anext(watch_one(signals, "a", after=0)) == signal(2)
        # Anyone who has seen more is not sent back.
        assert await anext(watch_one(signals, "a", after=9)) is None

    run(scenario())


def test_a_quiet_watch_shows_that_it_lives() -> None:
    async def scenario() -> None:
        signals = LatestSignals(heartbeat=0.01, clock=SYSTEM_CLOCK)
        watch = watch_one(signals, "a", after=0)
        assert [await anext(watch) for _ in range(3)] == [None, None, None]
        signals.update([signal(1)])
        assert await anext(watch) == signal(1)
        assert await anext(watch) is None

    run(scenario())


def test_closing_ends_every_watch() -> None:
    async def scenario() -> None:
        signals = LatestSignals(heartbeat=PATIENT, clock=SYSTEM_CLOCK)

        async def watch(name: str) -> list[Signal | None]:
            return [item async for item in watch_one(signals, name, after=0)]

        watches = [asyncio.ensure_future(watch(name)) for name in ("a", "a", "b")]
        await settled(signals, 3)
        signals.close()
        assert await asyncio.gather(*watches) == [[None]] * 3
        assert signals.watchers == 0
        assert await watch("late") == []

    run(scenario())


def test_watchers_that_leave_are_forgotten() -> None:
    async def scenario() -> None:
        signals = LatestSignals(heartbeat=PATIENT, clock=SYSTEM_CLOCK)
        watch = watch_one(signals, "a", after=0)
        await anext(watch)
        following = asyncio.ensure_future(anext(watch))
        await settled(signals, 1)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        assert signals.watchers == 0
        signals.update([signal(1)])

    run(scenario())


def test_one_change_reaches_its_own_watchers_only() -> None:
    async def scenario() -> None:
        signals = LatestSignals(heartbeat=PATIENT, clock=SYSTEM_CLOCK)

        async def first(name: str) -> Signal | None:
            async for item in watch_one(signals, name, after=0):
                if item is not None:
                    return item
            return None

        watches = {name: asyncio.ensure_future(first(name)) for name in map(str, range(2000))}
        await settled(signals, 2000)
        signals.update([signal(1, allocation_id="7")])
        assert await watches["7"] == signal(1, allocation_id="7")
        await asyncio.sleep(0)
        assert sum(watch.done() for watch in watches.values()) == 1
        signals.close()
        await asyncio.gather(*watches.values())

    run(scenario())


def test_one_watch_follows_many_allocations_and_names_the_subscription_of_each_change() -> None:
    async def scenario() -> None:
        signals = LatestSignals(heartbeat=PATIENT, clock=SYSTEM_CLOCK)
        signals.update([signal(1), signal(2, allocation_id="b")])
        subscriptions = [Subscription(f"key of {name}", name, 1) for name in ("a", "b", "c")]
        watch = signals.watch(subscriptions)
        assert await anext(watch) == SignalChange("key of b", signal(2, allocation_id="b"))
        following = asyncio.ensure_future(anext(watch))
        await settled(signals, 1)
        signals.update([signal(9, allocation_id="d")])
        signals.update([signal(3), signal(4, allocation_id="c")])
        assert await following == SignalChange("key of a", signal(3))
        assert await anext(watch) == SignalChange("key of c", signal(4, allocation_id="c"))

    run(scenario())
