"""Followers are told which of their trials have changed, and leave nothing behind."""

from __future__ import annotations

import asyncio

from resolute_serving.change_notifier import ChangeNotifier, PollIntervals


def test_a_follower_hears_of_its_trials_only_and_of_each_change_once() -> None:
    async def scenario() -> None:
        notifier = ChangeNotifier()
        with notifier.subscribe(["a", "b"]) as both, notifier.subscribe(["b"]) as one:
            for trial in ("a", "b", "a", "c"):
                notifier.notify(trial)
            assert await both.wait(60) == {"a", "b"}
            assert await one.wait(60) == {"b"}
            assert await both.wait(0.001) == frozenset()

    asyncio.run(scenario())


def test_every_follower_can_be_woken() -> None:
    async def scenario() -> None:
        notifier = ChangeNotifier()
        with notifier.subscribe("ab") as one, notifier.subscribe("c") as other:
            notifier.notify_all()
            assert (await one.wait(60), await other.wait(60)) == (frozenset("ab"), frozenset("c"))

    asyncio.run(scenario())


def test_a_follower_that_leaves_leaves_nothing_behind() -> None:
    async def scenario() -> None:
        notifier = ChangeNotifier()
        with notifier.subscribe(["a", "a", "b"]):
            notifier.notify("a")
        notifier.notify("a")
        assert not notifier._subscriptions

    asyncio.run(scenario())


def test_a_follower_of_many_looks_less_often() -> None:
    intervals = PollIntervals(recheck=2.0)
    assert (intervals.recheck_of(1), intervals.recheck_of(500)) == (2.0, 20.0)
