"""A stream that its server ends tells its client why, at whatever moment of its beginning that is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, cast

import grpc
import pytest
from grpc_health.v1 import health_pb2

from resolute.errors import UnauthenticatedError
from resolute_serving.auth.call_access import CallAccess
from resolute_serving.observability.gauges import CallCounts
from resolute_serving.server.calls import Calls
from resolute_serving.server.client_versions import ClientVersions

SERVICE, METHOD = "grpc.health.v1.Health", "Watch"
TURNS = 12
"""More turns of the loop than a stream needs to open."""


class EndingAccess:
    """Ends each stream some turns of the loop after it began, as a token's end does."""

    def __init__(self, turns: int) -> None:
        self._turns = turns
        self._ends: list[asyncio.Task[None]] = []

    def note_peer(self, metadata: Any, *, direct: str) -> None:
        """Notes nothing."""

    def known(self, header: str) -> None:
        """Knows nobody."""

    def note_refusal(self, method: str, error: Exception) -> None:
        """Counts nothing."""

    async def authenticate(self, method: str, header: str) -> None:
        """Lets everyone in."""

    @contextmanager
    def stream(self, token: object) -> Iterator[None]:
        task = asyncio.current_task()
        assert task is not None
        self._ends.append(asyncio.create_task(self._end(task)))
        try:
            yield
        except asyncio.CancelledError:
            raise UnauthenticatedError("the token has ended") from None

    async def _end(self, task: asyncio.Task[Any]) -> None:
        for _ in range(self._turns):
            await asyncio.sleep(0)
        task.cancel()


async def busy(request: Any, context: Any) -> AsyncIterator[bytes]:
    while True:
        yield b"news"


async def silent(request: Any, context: Any) -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b""


async def read_all(stream: AsyncIterator[bytes]) -> None:
    async for _ in stream:
        pass


@pytest.mark.parametrize("turns", range(TURNS))
@pytest.mark.parametrize("answer", [silent, busy])
def test_its_client_reads_why_it_ended(answer: Any, turns: int, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> grpc.aio.AioRpcError:
        access = cast("CallAccess", EndingAccess(turns))
        calls = Calls(access, CallCounts(), ClientVersions(), lookups={})
        read = health_pb2.HealthCheckRequest.FromString
        handler: Any = grpc.unary_stream_rpc_method_handler(answer, request_deserializer=read)
        calls.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),))
        server = grpc.aio.server(handlers=(calls,))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                stub: Any = channel.unary_stream(f"/{SERVICE}/{METHOD}")
                with pytest.raises(grpc.aio.AioRpcError) as failure:
                    await read_all(stub(b"", timeout=30))
        finally:
            await server.stop(0)
        return failure.value

    with caplog.at_level(logging.WARNING):
        ended = asyncio.run(scenario())
    assert (ended.code(), ended.details()) == (grpc.StatusCode.UNAUTHENTICATED, "the token has ended")
    assert not [record for record in caplog.records if record.name.startswith("grpc") and record.exc_info]
