"""Callers who open calls and send no request: strangers are refused, and others are not waited for long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import grpc
import pytest
from support.services.in_process import Running, serving
from support.waiting import wait_until_async

from resolute_experiments.blueprint import BLUEPRINT
from resolute_serving.bounds import callers
from resolute_serving.server import calls, grpc_server

ACCESS = "/resolute.api.experiments.v1.AccessService"
MINE, PUBLIC = f"{ACCESS}/GetCurrentUser", f"{ACCESS}/GetSignInMethods"
WATCH = "/resolute.api.experiments.v1.ExperimentsService/WatchExperiments"


async def never() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b""


def tried(tmp_path: Path, scenario: Callable[[Running, grpc.aio.Channel], Awaitable[None]]) -> None:
    async def body() -> None:
        async with (
            serving([BLUEPRINT], tmp_path) as running,
            grpc.aio.insecure_channel(running.address) as channel,
        ):
            await scenario(running, channel)

    asyncio.run(asyncio.wait_for(body(), 120))


async def code(call: Any) -> grpc.StatusCode:
    found: grpc.StatusCode = await call.code()
    return found


def test_a_stranger_who_sends_nothing_is_refused_without_waiting(tmp_path: Path) -> None:
    async def scenario(running: Running, channel: grpc.aio.Channel) -> None:
        for token in ((), (("authorization", "Bearer a.b.c"),)):
            stub: Any = channel.stream_unary(MINE)
            assert await code(stub(never(), metadata=token)) is grpc.StatusCode.UNAUTHENTICATED
            stream: Any = channel.stream_stream(WATCH)
            assert await code(stream(never(), metadata=token)) is grpc.StatusCode.UNAUTHENTICATED

    tried(tmp_path, scenario)


def test_a_request_that_does_not_come_ends_its_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "REQUEST_SECONDS", 0.1)

    async def none() -> AsyncIterator[bytes]:
        for request in list[bytes]():
            yield request

    async def scenario(running: Running, channel: grpc.aio.Channel) -> None:
        stub: Any = channel.stream_unary(PUBLIC)
        assert await code(stub(never())) is grpc.StatusCode.DEADLINE_EXCEEDED
        assert await code(stub(none())) is grpc.StatusCode.INVALID_ARGUMENT

    tried(tmp_path, scenario)


def test_calls_beyond_what_a_server_holds_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grpc_server, "MOST_CALLS", 5)

    async def scenario(running: Running, channel: grpc.aio.Channel) -> None:
        stub: Any = channel.stream_unary(PUBLIC)
        opened = [stub(never()) for _ in range(12)]
        codes = [await code(call) for call in opened]
        assert set(codes) == {grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED}
        one: Any = channel.unary_unary(PUBLIC)
        await one(b"")

    monkeypatch.setattr(calls, "REQUEST_SECONDS", 2.0)
    tried(tmp_path, scenario)


def test_first_and_later_calls_with_a_token_are_answered_alike(tmp_path: Path) -> None:
    async def scenario(running: Running, channel: grpc.aio.Channel) -> None:
        metadata = (("authorization", f"Bearer {running.user_token()}"),)
        stub: Any = channel.unary_unary(MINE)
        answers = [await stub(b"", metadata=metadata) for _ in range(3)]
        assert answers[0]
        assert len(set(answers)) == 1

    tried(tmp_path, scenario)


def signed(token: str) -> tuple[tuple[str, str]]:
    return (("authorization", f"Bearer {token}"),)


async def ended(opened: Iterable[Any], *, most: int) -> list[grpc.StatusCode]:
    """The codes of the first calls that end."""
    ends = asyncio.as_completed([asyncio.ensure_future(call.code()) for call in opened])
    return [await end for end in islice(ends, most)]


def test_a_caller_who_sends_nothing_has_some_calls_and_the_others_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callers, "MOST_AWAITED_OF_CALLER", 3)
    monkeypatch.setattr(calls, "REQUEST_SECONDS", 2.0)

    async def scenario(running: Running, channel: grpc.aio.Channel) -> None:
        metadata = signed(running.user_token())
        stub: Any = channel.unary_unary(MINE)
        for _ in range(5):  # whose requests come, so that they do not count
            await stub(b"", metadata=metadata)
        idle: Any = channel.stream_unary(MINE)
        opened = [idle(never(), metadata=metadata) for _ in range(8)]
        assert await ended(opened, most=5) == [grpc.StatusCode.DEADLINE_EXCEEDED] * 5
        assert sum(not call.done() for call in opened) == 3
        assert await stub(b"", metadata=metadata)
        for call in opened:
            call.cancel()

    tried(tmp_path, scenario)


def test_calls_of_one_caller_beyond_the_limit_are_refused_and_those_of_others_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callers, "MOST_CALLS_OF_CALLER", 3)
    monkeypatch.setattr(callers, "MOST_AWAITED_OF_CALLER", 0)
    monkeypatch.setattr(calls, "REQUEST_SECONDS", 60.0)

    async def scenario(running: Running, channel: grpc.aio.Channel) -> None:
        ada, bob = signed(running.user_token(name="ada")), signed(running.user_token(name="bob"))
        idle: Any = channel.stream_unary(PUBLIC)
        opened = [idle(never(), metadata=ada) for _ in range(8)]
        assert await ended(opened, most=5) == [grpc.StatusCode.RESOURCE_EXHAUSTED] * 5
        refused = next(call for call in opened if call.done())
        assert await refused.details() == (
            "the user ada has 3 calls in progress, as many as one may have at a server; wait for some of them"
        )
        stub: Any = channel.unary_unary(PUBLIC)
        await stub(b"", metadata=bob)
        await stub(b"")
        for call in opened:
            call.cancel()
        # Ended calls do not count: the next is answered as soon as the server knows that they have ended.
        while await code(stub(b"", metadata=ada)) is not grpc.StatusCode.OK:
            pass

    tried(tmp_path, scenario)


def test_a_call_that_is_cancelled_before_its_request_came_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callers, "MOST_AWAITED_OF_CALLER", 3)

    async def scenario(running: Running, channel: grpc.aio.Channel) -> None:
        metadata = signed(running.user_token(name="ada"))
        one: Any = channel.unary_unary(MINE)
        await one(b"", metadata=metadata)
        assert running.calls is not None
        counted = running.calls._gate.callers

        def room() -> bool:
            return counted.await_request(callers.Caller("user", "ada")) is not None

        idle: Any = channel.stream_unary(MINE)
        opened = [idle(never(), metadata=metadata) for _ in range(3)]
        await wait_until_async(lambda: not room())
        for call in opened:
            call.cancel()
        await wait_until_async(room)

    tried(tmp_path, scenario)
