"""A gRPC server whose calls a test scripts, for tests of what passes calls on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import grpc

Handler = Callable[[bytes, Any], Any]


class _Scripted(grpc.GenericRpcHandler):
    def __init__(self, unary: Mapping[str, Handler], streams: Mapping[str, Handler]) -> None:
        self._unary = unary
        self._streams = streams

    def service(self, handler_call_details: Any) -> Any:
        method = handler_call_details.method
        if method in self._unary:
            return grpc.unary_unary_rpc_method_handler(self._unary[method])
        if method in self._streams:
            return grpc.unary_stream_rpc_method_handler(self._streams[method])
        return None


@asynccontextmanager
async def scripted_grpc(
    *, unary: Mapping[str, Handler] | None = None, streams: Mapping[str, Handler] | None = None
) -> AsyncIterator[str]:
    """Serves scripted calls until the block ends; gives the address.

    Args:
        unary: By name, what answers a request of bytes with bytes.
        streams: By name, what answers it with an iterator of bytes.
    """
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((_Scripted(unary or {}, streams or {}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(0)
