"""What a stream sends of its objects, and when it looks at which of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Any

import pytest
from support.clocks import ManualClock
from support.waiting import wait_until_async

from resolute.errors import UnavailableError
from resolute_serving.context import Principal, Role, ServiceAccount, User, current_principal
from resolute_serving.following import PollIntervals, Turn, follow
from resolute_serving.notifier import LOOKS_AT_ONCE, Notifier

HOUR = 3600.0


class Counters:
    """Numbers that grow, and a stream of those that grew."""

    def __init__(self, **values: int) -> None:
        self.values = dict(values)
        self.notifier = Notifier[str]()
        self.clock = ManualClock()
        self.looks: list[list[str]] = []
        self._sent: dict[str, int] = {}

    def grow(self, name: str) -> None:
        self.values[name] += 1
        self.notifier.notify(name)

    async def look(self, turn: Turn[str]) -> AsyncGenerator[tuple[str, int], None]:
        """Sends each number once, one step a look, and follows it up to 9."""
        self.looks.append(list(turn.due))
        for name in turn.due:
            value = self.values[name]
            if self._sent.get(name, -1) >= value:
                continue
            self._sent[name] = self._sent[name] + 1 if name in self._sent else value
            if self._sent[name] < value:
                turn.unread.append(name)
            if value == 9:
                turn.finished.append(name)
            yield name, self._sent[name]

    def stream(
        self, *, recheck: float = HOUR, heartbeat: float = HOUR, on_stop: str = ""
    ) -> AsyncGenerator[tuple[str, int] | None, None]:
        return follow(
            list(self.values),
            self.look,
            topics=lambda name: (name,),
            notifier=self.notifier,
            clock=self.clock,
            pace=PollIntervals(recheck=recheck, heartbeat=heartbeat),
            quiet=None,
            on_stop=on_stop,
        )


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, timeout=60))


def test_a_stream_sends_the_state_and_then_only_what_changed() -> None:
    async def scenario() -> None:
        counters = Counters(a=1, b=2)
        async with aclosing(counters.stream()) as stream:
            assert [await anext(stream), await anext(stream)] == [("a", 1), ("b", 2)]
            counters.grow("b")
            assert await anext(stream) == ("b", 3)
        assert counters.looks == [["a", "b"], ["b"]]
        assert counters.notifier.topics == frozenset()

    run(scenario())


def test_what_is_not_read_to_its_end_is_looked_at_again_at_once() -> None:
    async def scenario() -> None:
        counters = Counters(a=1, b=1)
        async with aclosing(counters.stream()) as stream:
            assert [await anext(stream), await anext(stream)] == [("a", 1), ("b", 1)]
            counters.values["a"] = 3
            counters.grow("b")
            counters.notifier.notify("a")
            assert [await anext(stream) for _ in range(3)] == [("a", 2), ("b", 2), ("a", 3)]
        assert counters.looks[1:] == [["a", "b"], ["a"]]

    run(scenario())


def test_a_stream_ends_with_its_last_object() -> None:
    async def scenario() -> None:
        counters = Counters(a=9, b=8)
        sent = []
        async for news in counters.stream():
            sent.append(news)
            if news == ("b", 8):
                counters.grow("b")
        assert sent == [("a", 9), ("b", 8), ("b", 9)]

    run(scenario())


def test_a_stream_looks_at_everything_now_and_then_without_being_told() -> None:
    async def scenario() -> None:
        counters = Counters(a=1)
        async with aclosing(counters.stream(recheck=0.01)) as stream:
            await anext(stream)
            counters.values["a"] = 2
            assert await anext(stream) == ("a", 2)

    run(scenario())


def test_frequent_changes_of_one_object_keep_no_other_from_being_looked_at() -> None:
    async def scenario() -> None:
        counters = Counters(a=1, b=1)
        async with aclosing(counters.stream(heartbeat=2 * HOUR)) as stream:
            await anext(stream), await anext(stream)
            counters.values["b"] = 2
            counters.clock.advance(HOUR)
            counters.grow("a")
            assert [await anext(stream), await anext(stream)] == [("a", 2), ("b", 2)]

    run(scenario())


def test_a_quiet_stream_shows_that_it_lives() -> None:
    async def scenario() -> None:
        counters = Counters(a=1)
        async with aclosing(counters.stream(recheck=0.01, heartbeat=10.0)) as stream:
            await anext(stream)
            counters.clock.advance(10)
            assert await anext(stream) is None

    run(scenario())


def test_a_service_that_stops_ends_its_streams() -> None:
    async def scenario() -> None:
        counters = Counters(a=1)
        silent, told = counters.stream(), Counters.stream(counters, on_stop="come back")
        assert await anext(silent) == ("a", 1)
        counters.notifier.close()
        assert [news async for news in silent] == []
        with pytest.raises(UnavailableError, match="come back"):
            await anext(told)

    run(scenario())


def test_a_stream_of_many_objects_looks_less_often_but_not_less_than_it_shows_that_it_lives() -> None:
    pace = PollIntervals(recheck=2.0, heartbeat=30.0)
    assert [pace.for_many(count).recheck for count in (1, 500, 5000)] == [2.0, 20.0, 30.0]


class Crowd:
    """Streams of one object, whose looks wait until they are let go on."""

    def __init__(self) -> None:
        self.notifier = Notifier[str]()
        self.looking = 0
        self.most = 0
        self.go_on = asyncio.Event()

    async def look(self, turn: Turn[str]) -> AsyncGenerator[str, None]:
        self.looking += 1
        self.most = max(self.most, self.looking)
        await self.go_on.wait()
        self.looking -= 1
        turn.finished.extend(turn.due)
        yield "news"

    async def stream_of(self, principal: Principal) -> list[str | None]:
        current_principal.set(principal)
        pace = PollIntervals(recheck=HOUR, heartbeat=HOUR)
        stream = follow(
            ["one"],
            self.look,
            topics=lambda name: (name,),
            notifier=self.notifier,
            clock=ManualClock(),
            pace=pace,
            quiet=None,
        )
        return [each async for each in stream]


def test_of_thousands_whom_one_change_wakes_few_look_at_once_and_services_among_them_do_not_wait() -> None:
    async def scenario() -> None:
        crowd = Crowd()
        people = [asyncio.create_task(crowd.stream_of(User("ada", Role.VIEWER))) for _ in range(2000)]
        await wait_until_async(lambda: crowd.looking == LOOKS_AT_ONCE)
        signals = asyncio.create_task(crowd.stream_of(ServiceAccount("preemption")))
        await wait_until_async(lambda: crowd.looking == LOOKS_AT_ONCE + 1)
        crowd.go_on.set()
        assert await signals == ["news"]
        assert await asyncio.gather(*people) == [["news"]] * 2000
        assert crowd.most == LOOKS_AT_ONCE + 1

    asyncio.run(scenario())


def test_a_client_that_does_not_read_keeps_no_other_from_looking() -> None:
    async def scenario() -> None:
        crowd = Crowd()
        crowd.go_on.set()
        unread = []
        current_principal.set(User("ada", Role.VIEWER))
        for _ in range(2 * LOOKS_AT_ONCE):
            stream = follow(
                ["one"],
                crowd.look,
                topics=lambda name: (name,),
                notifier=crowd.notifier,
                clock=ManualClock(),
                pace=PollIntervals(recheck=HOUR, heartbeat=HOUR),
                quiet=None,
            )
            unread.append(stream)
            assert await anext(stream) == "news"
        for stream in unread:
            await stream.aclose()

    asyncio.run(asyncio.wait_for(scenario(), 60))
