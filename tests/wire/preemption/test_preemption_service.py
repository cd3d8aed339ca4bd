from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from support.services.in_process import Running, serving
from support.services.stand_ins.signal_source import SignalSource
from support.waiting import wait_until_async

from resolute.api.preemption.v1.preemption_service_pb2 import (
    SignalSubscription,
    WatchSignalsRequest,
    WatchSignalsResponse,
)
from resolute.api.preemption.v1.preemption_service_pb2_grpc import PreemptionServiceStub
from resolute.api.preemption.v1.signal_pb2 import Signal
from resolute.errors import InvalidArgumentError, PermissionDeniedError, UnauthenticatedError
from resolute_preemption.service import PreemptionService
from resolute_preemption.settings import PreemptionSettings
from resolute_serving.context import Role, TrialRun
from resolute_serving.server.service import Blueprint

if TYPE_CHECKING:
    from resolute.api.preemption.v1.preemption_service_pb2_grpc import PreemptionServiceAsyncStub

QUICK = PreemptionSettings(heartbeat=30, first_pause=0.01, longest_pause=0.05)


def blueprint(settings: PreemptionSettings = QUICK) -> Blueprint:
    return Blueprint(
        name="preemption", package="", create=lambda env: PreemptionService(env, settings=settings)
    )


@asynccontextmanager
async def source() -> AsyncIterator[SignalSource]:
    standing_in = SignalSource()
    await standing_in.start()
    try:
        yield standing_in
    finally:
        await standing_in.stop()


@asynccontextmanager
async def stub(running: Running, token: str) -> AsyncIterator[PreemptionServiceAsyncStub]:
    channel = running.channel(token)
    try:
        yield cast("PreemptionServiceAsyncStub", PreemptionServiceStub(channel))
    finally:
        await channel.close()


def run(**claims: object) -> TrialRun:
    facts = {"trial_id": "t", "run": 1, "experiment_id": "e", "allocation_id": "a", "workspace": "w"}
    return TrialRun(**{**facts, **claims})  # type: ignore[arg-type]


def watch_request(allocation_id: str, after: int = 0) -> WatchSignalsRequest:
    subscription = SignalSubscription(
        key=f"key of {allocation_id}", allocation_id=allocation_id, after_revision=after
    )
    return WatchSignalsRequest(subscriptions=[subscription])


async def first_signal(client: PreemptionServiceAsyncStub, allocation_id: str, after: int = 0) -> Signal:
    """Watches until a signal comes."""
    request = watch_request(allocation_id, after)
    call = client.WatchSignals(request, timeout=60)
    try:
        async for response in call:
            if response.HasField("signal"):
                return response.signal
    finally:
        call.cancel()
    raise AssertionError("the watch ended")


def test_trials_watch_their_own_allocation_and_people_watch_any(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            source() as experiments,
            serving([blueprint()], tmp_path, addresses={"experiments": experiments.address}) as running,
        ):
            experiments.publish(Signal(allocation_id="a", revision=1, preempt=True))
            async with stub(running, running.trial_token(run())) as trial:
                assert (await first_signal(trial, "a")).preempt
                with pytest.raises(PermissionDeniedError):
                    await first_signal(trial, "b")
            async with stub(running, running.user_token(role=Role.VIEWER)) as viewer:
                assert (await first_signal(viewer, "a")).preempt
                with pytest.raises(InvalidArgumentError, match="name the allocation"):
                    await first_signal(viewer, "")
            async with stub(running, "") as nobody:
                with pytest.raises(UnauthenticatedError):
                    await first_signal(nobody, "a")
            assert experiments.tokens[0].startswith("Bearer ")

    asyncio.run(scenario())


def test_watchers_keep_their_streams_while_the_experiments_service_is_away(tmp_path: Path) -> None:
    settings = PreemptionSettings(heartbeat=0.05, first_pause=0.01, longest_pause=0.05)

    async def scenario() -> None:
        async with (
            source() as experiments,
            serving(
                [blueprint(settings)], tmp_path, addresses={"experiments": experiments.address}
            ) as running,
            stub(running, running.user_token()) as client,
        ):
            experiments.publish(Signal(allocation_id="known", revision=1, preempt=True))
            await wait_until_async(lambda: experiments.open == 1)
            request = watch_request("a")
            watch = aiter(client.WatchSignals(request, timeout=60))
            assert not (await anext(watch)).HasField("signal")
            await experiments.stop()
            for _ in range(5):
                assert not (await anext(watch)).HasField("signal")
            # What stood still stands, for those who come new as well.
            assert (await first_signal(client, "known")).revision == 1
            experiments.signals["a"] = Signal(allocation_id="a", revision=1, kill=True)
            await experiments.start()
            while not (response := await anext(watch)).HasField("signal"):
                pass
            assert response.signal.kill

    asyncio.run(scenario())


def test_the_service_starts_before_the_experiments_service(tmp_path: Path) -> None:
    async def scenario() -> None:
        experiments = SignalSource()
        experiments.signals["a"] = Signal(allocation_id="a", revision=1, preempt=True)
        addresses = {"experiments": experiments.address}
        async with (
            serving([blueprint()], tmp_path, addresses=addresses) as running,
            stub(running, running.user_token()) as client,
        ):
            waiting = asyncio.ensure_future(first_signal(client, "a"))
            service = cast("PreemptionService", running.services[0])
            await wait_until_async(lambda: service.signals.watchers == 1)
            await experiments.start()
            assert (await waiting).preempt
            await experiments.stop()

    asyncio.run(scenario())


def test_a_silent_experiments_service_is_asked_anew(tmp_path: Path) -> None:
    settings = PreemptionSettings(heartbeat=30, silence_timeout=0.05, first_pause=0.01, longest_pause=0.02)

    async def scenario() -> None:
        async with (
            source() as experiments,
            serving([blueprint(settings)], tmp_path, addresses={"experiments": experiments.address}),
        ):
            await wait_until_async(lambda: experiments.streams >= 3)
            await wait_until_async(lambda: experiments.open <= 1)

    asyncio.run(scenario())


def test_ended_allocations_are_forgotten_when_the_stream_has_lived_its_time(tmp_path: Path) -> None:
    settings = PreemptionSettings(heartbeat=30, lifetime=0.2, first_pause=0.01)

    async def scenario() -> None:
        async with (
            source() as experiments,
            serving(
                [blueprint(settings)], tmp_path, addresses={"experiments": experiments.address}
            ) as running,
            stub(running, running.user_token()) as client,
        ):
            experiments.publish(Signal(allocation_id="ended", revision=1, preempt=True))
            assert (await first_signal(client, "ended")).revision == 1
            del experiments.signals["ended"]
            streams = experiments.streams
            await wait_until_async(lambda: experiments.streams >= streams + 2)
            request = watch_request("ended")
            assert not (await anext(aiter(client.WatchSignals(request, timeout=10)))).HasField("signal")

    asyncio.run(scenario())


def test_watches_end_when_the_service_stops(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with source() as experiments:
            addresses = {"experiments": experiments.address}
            async with serving([blueprint()], tmp_path, addresses=addresses) as running:
                channel = running.channel(running.user_token())
                client = cast("PreemptionServiceAsyncStub", PreemptionServiceStub(channel))
                call = client.WatchSignals(watch_request("a"), timeout=60)
                watch = aiter(call)
                assert await anext(watch) == WatchSignalsResponse()
            # A watch that the stop had left open would end with DEADLINE_EXCEEDED.
            assert [response async for response in watch] == []
            await channel.close()

    asyncio.run(scenario())


def test_a_signal_reaches_its_watcher_and_none_of_a_thousand_others(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            source() as experiments,
            serving([blueprint()], tmp_path, addresses={"experiments": experiments.address}) as running,
            stub(running, running.user_token()) as client,
            stub(running, running.user_token(name="bo")) as crowd,
        ):
            service = cast("PreemptionService", running.services[0])
            others = [asyncio.ensure_future(first_signal(crowd, f"other-{number}")) for number in range(1000)]
            await wait_until_async(lambda: service.signals.watchers == 1000, seconds=30)
            for revision in range(1, 11):
                waiting = asyncio.ensure_future(first_signal(client, "a", revision - 1))
                await wait_until_async(lambda: service.signals.watchers == 1001)
                experiments.publish(Signal(allocation_id="a", revision=revision, preempt=True))
                assert (await waiting).revision == revision
                await wait_until_async(lambda: service.signals.watchers == 1000)
            assert not any(other.done() for other in others)
            for number in range(1000):
                signal = Signal(allocation_id=f"other-{number}", revision=1, preempt=True)
                experiments.publish(signal)
            assert all(signal.preempt for signal in await asyncio.gather(*others))

    asyncio.run(scenario())
