"""A real gRPC server that stands in for the experiments service's stream of signals, and can be disturbed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
from support.ports import free_port

from resolute.api.experiments.v1 import allocations_service_pb2 as messages
from resolute.api.preemption.v1.signal_pb2 import Signal
from resolute.contracts.calls.keepalive import TOLERANCE_OPTIONS

_METHOD = "resolute.api.experiments.v1.AllocationsService"


class SignalSource:
    """Serves ``AllocationsService.FollowSignalChanges``: the state at once, then changes.

    Only this one call is there; it knows no tokens.
    """

    def __init__(self) -> None:
        self.port = free_port()
        self.signals: dict[str, Signal] = {}
        """What stands, by allocation."""
        self.streams = 0
        """How many streams were opened so far."""
        self.open = 0
        """How many are open."""
        self.tokens: list[str] = []
        """The authorization of each stream."""
        self._changes: set[asyncio.Queue[Signal]] = set()
        self._server: grpc.aio.Server | None = None

    @property
    def address(self) -> str:
        """``host:port``; the same after a restart."""
        return f"127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Listens."""
        server = grpc.aio.server(options=[("grpc.so_reuseport", 0), *TOLERANCE_OPTIONS])
        handler = grpc.unary_stream_rpc_method_handler(
            self._watch,
            request_deserializer=messages.FollowSignalChangesRequest.FromString,
            response_serializer=messages.FollowSignalChangesResponse.SerializeToString,
        )
        server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(_METHOD, {"FollowSignalChanges": handler})]
        )
        server.add_insecure_port(self.address)
        await server.start()
        self._server = server

    async def stop(self) -> None:
        """Breaks every stream and stops listening."""
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    def publish(self, signal: Signal) -> None:
        """Changes the signal of an allocation and tells anyone who follows."""
        self.signals[signal.allocation_id] = signal
        for queue in self._changes:
            queue.put_nowait(signal)

    async def _watch(self, request: Any, context: Any) -> AsyncIterator[messages.FollowSignalChangesResponse]:
        self.streams += 1
        self.open += 1
        self.tokens.append(str(dict(context.invocation_metadata()).get("authorization", "")))
        queue: asyncio.Queue[Signal] = asyncio.Queue()
        self._changes.add(queue)
        try:
            yield messages.FollowSignalChangesResponse(signals=list(self.signals.values()), reset=True)
            while True:
                yield messages.FollowSignalChangesResponse(signals=[await queue.get()])
        finally:
            self.open -= 1
            self._changes.discard(queue)
