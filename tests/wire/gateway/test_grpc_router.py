"""Calls that the gateway passes on over gRPC fail as their service says."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any

import grpc
import pytest
from support.waiting import wait_until_async

from resolute_gateway import grpc_router
from resolute_gateway.backends import Backends
from resolute_gateway.grpc_router import GrpcRouter

_METHOD = "/resolute.api.experiments.v1.ExperimentsService/CreateExperimentInChunks"
_CALLS = 60


class _RefusingHandler(grpc.GenericRpcHandler):
    """A service that refuses a client's stream after so many requests."""

    def __init__(self, reads: int) -> None:
        self._reads = reads

    def service(self, handler_call_details: Any) -> Any:
        async def refuse(requests: AsyncIterator[bytes], context: Any) -> bytes:
            for _ in range(self._reads):
                await anext(requests)
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the config is wrong")
            return b""

        return grpc.stream_unary_rpc_method_handler(refuse)


def _call(address: str, sizes: Sequence[int]) -> Counter[str]:
    """What the SDK does; a client of grpc.aio would have the fault that the gateway avoids."""
    outcomes: Counter[str] = Counter()
    with grpc.insecure_channel(address) as channel:
        call: Any = channel.stream_unary(_METHOD)
        for _ in range(_CALLS):
            try:
                call(iter([b"x" * size for size in sizes]), timeout=60)
            except grpc.RpcError as failure:
                outcomes[f"{failure.code().name}: {failure.details()}"] += 1
    return outcomes


@pytest.mark.parametrize("reads", [0, 1])
@pytest.mark.parametrize("sizes", [(10, 10, 10), (3_000_000,) * 3, (10, *[200_000] * 20)])
def test_a_refused_client_stream_says_why(reads: int, sizes: Sequence[int]) -> None:
    async def scenario() -> Counter[str]:
        service = grpc.aio.server()
        service.add_generic_rpc_handlers((_RefusingHandler(reads),))
        address = f"127.0.0.1:{service.add_insecure_port('127.0.0.1:0')}"
        await service.start()
        gateway = grpc.aio.server()
        backends = Backends({"*": address})
        gateway.add_generic_rpc_handlers((GrpcRouter(backends),))
        port = gateway.add_insecure_port("127.0.0.1:0")
        await gateway.start()
        outcomes = await asyncio.to_thread(_call, f"127.0.0.1:{port}", sizes)
        await gateway.stop(0)
        await service.stop(0)
        await backends.close()
        return outcomes

    assert asyncio.run(scenario()) == {"INVALID_ARGUMENT: the config is wrong": _CALLS}


def test_streams_of_requests_beyond_the_limit_are_refused_and_ended_ones_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> list[grpc.StatusCode]:
        service = grpc.aio.server()
        service.add_generic_rpc_handlers((_RefusingHandler(2),))
        address = f"127.0.0.1:{service.add_insecure_port('127.0.0.1:0')}"
        await service.start()
        gateway = grpc.aio.server()
        backends = Backends({"*": address})
        router = GrpcRouter(backends)
        gateway.add_generic_rpc_handlers((router,))
        port = gateway.add_insecure_port("127.0.0.1:0")
        await gateway.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub: Any = channel.stream_unary(_METHOD)
            held = stub(timeout=60)
            await held.write(b"x")
            await wait_until_async(lambda: router._uploads == 1)
            codes = [await stub(timeout=60).code()]
            held.cancel()
            await wait_until_async(lambda: router._uploads == 0)
            last = stub(timeout=60)
            await last.write(b"x")
            await last.write(b"x")
            codes.append(await last.code())
        await gateway.stop(0)
        await service.stop(0)
        await backends.close()
        return codes

    monkeypatch.setattr(grpc_router, "MAX_UPLOADS", 1)
    assert asyncio.run(scenario()) == [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INVALID_ARGUMENT]


class _LongHandler(grpc.GenericRpcHandler):
    """A service whose streams are long; it counts the bytes that it could send of each."""

    def __init__(self) -> None:
        self.sent: Counter[bytes] = Counter()

    def service(self, handler_call_details: Any) -> Any:
        async def send(request: bytes, context: Any) -> AsyncIterator[bytes]:
            while self.sent[request] < 32 << 20:
                yield b"x" * 100_000
                self.sent[request] += 100_000

        return grpc.unary_stream_rpc_method_handler(send)


def test_little_of_a_stream_gathers_whose_client_reads_nothing() -> None:
    async def scenario() -> int:
        service, handler = grpc.aio.server(), _LongHandler()
        service.add_generic_rpc_handlers((handler,))
        backends = Backends({"*": f"127.0.0.1:{service.add_insecure_port('127.0.0.1:0')}"})
        await service.start()
        gateway = grpc.aio.server()
        gateway.add_generic_rpc_handlers((GrpcRouter(backends),))
        address = f"127.0.0.1:{gateway.add_insecure_port('127.0.0.1:0')}"
        await gateway.start()
        async with grpc.aio.insecure_channel(address, options=(("grpc.http2.bdp_probe", 0),)) as channel:
            method: Any = channel.unary_stream("/resolute.api.logs.v1.LogsService/FollowLines")
            unread = method(b"unread", timeout=60)
            # gRPC looks how fast the connection is as long as another stream is read.
            async for _ in method(b"read", timeout=60):
                pass
            unread.cancel()
        await gateway.stop(0)
        await service.stop(0)
        await backends.close()
        return handler.sent[b"unread"]

    # One message is on its way to the client, and the next waits in the service.
    assert 0 < asyncio.run(scenario()) < 200_000
