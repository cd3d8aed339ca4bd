"""A gateway that runs separately bounds the calls of each caller, and the time until their requests come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import pytest
from support.waiting import wait_until_async

from resolute_gateway.backends import Backends
from resolute_gateway.bounded_calls import BoundedCalls
from resolute_gateway.grpc_router import GrpcRouter
from resolute_serving.bounds import callers
from resolute_serving.server import calls

_SERVICE = "/resolute.api.experiments.v1.ExperimentsService"
_ONE, _UPLOAD = f"{_SERVICE}/GetExperiment", f"{_SERVICE}/CreateExperimentInChunks"
ADA, BOB = [(("authorization", f"Bearer {name}"),) for name in ("ada", "bob")]


class _Held(grpc.GenericRpcHandler):
    """A service that answers nothing while it is held."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.begun = 0

    def service(self, handler_call_details: Any) -> Any:
        async def answer(_: Any, context: Any) -> bytes:
            self.begun += 1
            await self.released.wait()
            return b"answer"

        streams = handler_call_details.method == _UPLOAD
        maker = grpc.stream_unary_rpc_method_handler if streams else grpc.unary_unary_rpc_method_handler
        return maker(answer)


Scenario = Callable[[_Held, grpc.aio.Channel], Awaitable[None]]


def tried(scenario: Scenario) -> None:
    async def body() -> None:
        service, gateway, held = grpc.aio.server(), grpc.aio.server(), _Held()
        service.add_generic_rpc_handlers((held,))
        backends = Backends({"*": f"127.0.0.1:{service.add_insecure_port('127.0.0.1:0')}"})
        gateway.add_generic_rpc_handlers((BoundedCalls([GrpcRouter(backends)]),))
        port = gateway.add_insecure_port("127.0.0.1:0")
        await service.start()
        await gateway.start()
        try:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                await scenario(held, channel)
        finally:
            await gateway.stop(0)
            await service.stop(0)
            await backends.close()

    asyncio.run(asyncio.wait_for(body(), 60))


async def never() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b""


@pytest.mark.parametrize("method", [_ONE, _UPLOAD])
def test_calls_of_one_token_beyond_the_limit_are_refused_and_those_of_others_are_not(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(callers, "MOST_CALLS_OF_CALLER", 2)

    async def scenario(held: _Held, channel: grpc.aio.Channel) -> None:
        def call(metadata: tuple[tuple[str, str], ...]) -> Any:
            if method == _UPLOAD:
                stream: Any = channel.stream_unary(method)
                return stream(iter([b"x"]), metadata=metadata)
            single: Any = channel.unary_unary(method)
            return single(b"x", metadata=metadata)

        opened = [call(ADA) for _ in range(2)]
        await wait_until_async(lambda: held.begun == 2)
        refused = call(ADA)
        assert await refused.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "has 2 calls in progress" in await refused.details()
        opened.append(call(BOB))
        await wait_until_async(lambda: held.begun == 3)
        held.released.set()
        assert [await one for one in opened] == [b"answer"] * 3
        # Ended calls do not count: the next is answered as soon as the gateway knows that they have ended.
        while await call(ADA).code() is not grpc.StatusCode.OK:
            pass

    tried(scenario)


def test_calls_whose_requests_do_not_come_are_bounded_by_address_and_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(callers, "MOST_CALLS_OF_CALLER", 2)
    monkeypatch.setattr(calls, "REQUEST_SECONDS", 1.0)

    async def scenario(held: _Held, channel: grpc.aio.Channel) -> None:
        idle: Any = channel.stream_unary(_ONE)
        made_up = [(("authorization", f"Bearer {number}"),) for number in range(5)]
        codes = await asyncio.gather(*(idle(never(), metadata=token).code() for token in made_up))
        assert sorted(code.name for code in codes) == ["DEADLINE_EXCEEDED"] * 2 + ["RESOURCE_EXHAUSTED"] * 3
        held.released.set()
        one: Any = channel.unary_unary(_ONE)
        assert await one(b"", metadata=ADA) == b"answer"

    tried(scenario)
