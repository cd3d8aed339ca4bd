"""Bodies count when they come, in all and by address; what is only declared takes nothing."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest
from connectrpc.errors import ConnectError
from starlette.types import Message, Receive

from resolute_gateway.web.callers import current_caller
from resolute_gateway.web.calls import BoundedCalls
from resolute_gateway.web.held_bodies import HeldBodies

HERE, THERE = "ipv4:10.0.0.1:1", "ipv4:10.0.0.2:1"


async def part() -> Message:
    return {"type": "http.request", "body": b"x" * 100, "more_body": True}


def test_parts_beyond_the_bounds_are_refused_until_others_have_ended() -> None:
    async def scenario() -> None:
        bodies = HeldBodies(most=500, most_of_address=300)
        with ExitStack() as held:
            current_caller.set(HERE)
            for _ in range(3):
                await held.enter_context(bodies.counted(part))()
            with bodies.counted(part) as beyond, pytest.raises(ConnectError, match=r"of 10\.0\.0\.1"):
                await beyond()
            current_caller.set(THERE)
            for _ in range(2):
                await held.enter_context(bodies.counted(part))()
            with bodies.counted(part) as beyond, pytest.raises(ConnectError, match="many large requests;"):
                await beyond()
        with bodies.counted(part) as free:
            for _ in range(10):  # one call alone always fits
                await free()
        assert not bodies._held

    asyncio.run(scenario())


def test_bodies_that_are_declared_and_do_not_come_keep_nobody_out() -> None:
    """A stranger without a token did so with thirty connections."""
    answered = []

    async def calls(scope: object, receive: Receive, send: object) -> None:
        await receive()
        answered.append(scope)

    async def scenario() -> None:
        never, small = asyncio.Event(), {"type": "http.request", "body": b"{}", "more_body": False}

        async def nothing() -> Message:
            await never.wait()
            return small

        async def body() -> Message:
            return small

        async def send(message: Message) -> None:
            raise AssertionError(message)

        def scope(size: int) -> dict[str, object]:
            headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % size)]
            return {"type": "http", "path": "/x/Y", "headers": headers}

        bounded = BoundedCalls(calls, paths=["/x/Y"], settings=None, authorized=lambda own: own)  # type: ignore[arg-type]
        waiting = [asyncio.create_task(bounded(scope(1 << 20), nothing, send)) for _ in range(300)]
        await asyncio.sleep(0)
        await bounded(scope(2), body, send)
        assert len(answered) == 1
        never.set()
        await asyncio.gather(*waiting)

    asyncio.run(scenario())
