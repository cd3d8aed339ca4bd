"""What every watcher may rely on, in the process that knows the signals and over the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import pytest
from support.services.in_process import serving
from support.services.stand_ins.signal_source import SignalSource
from support.waiting import wait_until_async

from resolute.api.preemption.v1.preemption_service_pb2 import SignalSubscription, WatchSignalsRequest
from resolute.api.preemption.v1.preemption_service_pb2_grpc import PreemptionServiceStub
from resolute.api.preemption.v1.signal_pb2 import Signal, SignalReason
from resolute.contracts.clock import SYSTEM_CLOCK
from resolute_preemption.latest_signals import LatestSignals, Subscription
from resolute_preemption.service import PreemptionService
from resolute_preemption.settings import PreemptionSettings
from resolute_serving.server.service import Blueprint

if TYPE_CHECKING:
    from resolute.api.preemption.v1.preemption_service_pb2_grpc import PreemptionServiceAsyncStub

SETTINGS = PreemptionSettings(heartbeat=0.1, first_pause=0.01, longest_pause=0.05)


class Fanout(Protocol):
    """Signals that are published on one side and watched on the other."""

    def publish(self, signal: Signal) -> None: ...

    async def restart(self, *signals: Signal) -> None:
        """Loses whatever is not among these, as the publishing side may when it restarts."""

    def watch(self, allocation_id: str, *, after_revision: int = 0) -> AsyncIterator[Signal | None]: ...


class InProcess:
    def __init__(self) -> None:
        self._signals = LatestSignals(heartbeat=SETTINGS.heartbeat, clock=SYSTEM_CLOCK)

    def publish(self, signal: Signal) -> None:
        self._signals.update([signal])

    async def restart(self, *signals: Signal) -> None:
        self._signals.replace(signals)

    async def watch(self, allocation_id: str, *, after_revision: int = 0) -> AsyncIterator[Signal | None]:
        subscriptions = [Subscription("key", allocation_id, after_revision)]
        async with aclosing(self._signals.watch(subscriptions)) as changes:
            async for change in changes:
                yield None if change is None else change.signal


class OverTheWire:
    def __init__(self, source: SignalSource, stub: PreemptionServiceAsyncStub) -> None:
        self._source = source
        self._stub = stub

    def publish(self, signal: Signal) -> None:
        self._source.publish(signal)

    async def restart(self, *signals: Signal) -> None:
        await self._source.stop()
        self._source.signals = {signal.allocation_id: signal for signal in signals}
        streams = self._source.streams
        await self._source.start()
        await wait_until_async(lambda: self._source.streams > streams)

    async def watch(self, allocation_id: str, *, after_revision: int = 0) -> AsyncIterator[Signal | None]:
        subscription = SignalSubscription(
            key="key", allocation_id=allocation_id, after_revision=after_revision
        )
        request = WatchSignalsRequest(subscriptions=[subscription])
        async for response in self._stub.WatchSignals(request, timeout=30):
            yield response.signal if response.HasField("signal") else None


@asynccontextmanager
async def in_process(_: Path) -> AsyncIterator[Fanout]:
    yield InProcess()


@asynccontextmanager
async def over_the_wire(tmp_path: Path) -> AsyncIterator[Fanout]:
    source = SignalSource()
    await source.start()
    blueprint = Blueprint(
        name="preemption", package="", create=lambda env: PreemptionService(env, settings=SETTINGS)
    )
    try:
        async with serving([blueprint], tmp_path, addresses={"experiments": source.address}) as running:
            await wait_until_async(lambda: source.open == 1)
            channel = running.channel(running.user_token())
            try:
                stub = cast("PreemptionServiceAsyncStub", PreemptionServiceStub(channel))
                yield OverTheWire(source, stub)
            finally:
                await channel.close()
    finally:
        await source.stop()


Scenario = Callable[[Fanout], Coroutine[Any, Any, None]]
Opening = Callable[[Path], AbstractAsyncContextManager[Fanout]]


@pytest.fixture(params=[in_process, over_the_wire])
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Scenario], None]:
    """Runs a scenario on one of the ways in which signals reach watchers."""
    opening: Opening = request.param

    async def run(scenario: Scenario) -> None:
        async with opening(tmp_path) as fanout:
            await asyncio.wait_for(scenario(fanout), timeout=60)

    return lambda scenario: asyncio.run(run(scenario))


def signal(revision: int, **fields: Any) -> Signal:
    return Signal(allocation_id="a", revision=revision, **{"preempt": True, **fields})


async def next_signal(watch: AsyncIterator[Signal | None]) -> Signal:
    while True:
        item = await anext(watch)
        if item is not None:
            return item


def test_a_watch_gives_what_stands_and_then_each_change(play: Callable[[Scenario], None]) -> None:
    async def scenario(fanout: Fanout) -> None:
        first = signal(1, reason=SignalReason.SIGNAL_REASON_SCHEDULER)
        first.kill_time.FromSeconds(1_700_000_000)
        fanout.publish(first)
        watch = fanout.watch("a")
        assert await next_signal(watch) == first
        second = signal(2, kill=True, reason=SignalReason.SIGNAL_REASON_USER)
        fanout.publish(second)
        assert await next_signal(watch) == second

    play(scenario)


def test_a_watch_resumes_after_the_revision_it_has_seen(play: Callable[[Scenario], None]) -> None:
    async def scenario(fanout: Fanout) -> None:
        fanout.publish(signal(4))
        assert await next_signal(fanout.watch("a")) == signal(4)
        watch = fanout.watch("a", after_revision=4)
        assert await anext(watch) is None
        fanout.publish(signal(5))
        assert await next_signal(watch) == signal(5)

    play(scenario)


def test_a_watch_of_an_unknown_allocation_lives_and_waits(play: Callable[[Scenario], None]) -> None:
    async def scenario(fanout: Fanout) -> None:
        watch = fanout.watch("a")
        assert [await anext(watch) for _ in range(3)] == [None, None, None]
        fanout.publish(Signal(allocation_id="b", revision=1))
        fanout.publish(signal(1))
        assert await next_signal(watch) == signal(1)

    play(scenario)


def test_a_watch_outlives_a_restart_of_the_other_side(play: Callable[[Scenario], None]) -> None:
    async def scenario(fanout: Fanout) -> None:
        fanout.publish(signal(1))
        watch = fanout.watch("a")
        assert await next_signal(watch) == signal(1)
        await fanout.restart()
        assert await anext(watch) is None
        await fanout.restart(signal(1))
        assert await anext(watch) is None
        await fanout.restart(signal(2))
        assert await next_signal(watch) == signal(2)

    play(scenario)


def test_every_watcher_of_an_allocation_hears_of_it(play: Callable[[Scenario], None]) -> None:
    async def scenario(fanout: Fanout) -> None:
        watches = [fanout.watch("a") for _ in range(20)]
        assert [await anext(watch) for watch in watches] == [None] * 20
        fanout.publish(signal(1))
        assert await asyncio.gather(*map(next_signal, watches)) == [signal(1)] * 20

    play(scenario)


def test_a_watcher_that_leaves_disturbs_nobody(play: Callable[[Scenario], None]) -> None:
    async def scenario(fanout: Fanout) -> None:
        staying, leaving = fanout.watch("a"), fanout.watch("a")
        await anext(staying)
        async with aclosing(leaving):  # type: ignore[type-var]
            await anext(leaving)
        fanout.publish(signal(1))
        assert await next_signal(staying) == signal(1)

    play(scenario)
