"""One gRPC address for services that run separately.

Supervisors, trials and commands use one address. Each call is forwarded to its service without decoding, with
metadata, deadline and errors. The services check tokens; the router does not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import CancelledError
from functools import partial
from typing import Any

import grpc

from resolute.contracts.calls.methods import methods, path_of
from resolute_gateway.backends import Backends
from resolute_serving.auth.forwarded_peers import PEER_HEADER, ForwardedPeers

_STREAMS_OF_REQUESTS = frozenset(path_of(method) for method in methods() if method.client_streaming)
MAX_UPLOADS = 64
"""Most calls at a time that stream their requests: each has a thread."""


class GrpcRouter(grpc.GenericRpcHandler):
    """Forwards calls by the name of their service.

    Args:
        backends: The services.
    """

    def __init__(self, backends: Backends) -> None:
        self._backends = backends
        self._uploads = 0

    def service(self, handler_call_details: Any) -> Any:
        """Finds out where a call goes; None, which the caller sees as UNIMPLEMENTED, for nowhere."""
        method = handler_call_details.method
        if method in _STREAMS_OF_REQUESTS:
            blocking = self._backends.blocking_channel(method)
            if blocking is None:
                return None
            return grpc.stream_unary_rpc_method_handler(partial(self._upload, blocking, method))
        channel = self._backends.channel(method)
        if channel is None:
            return None
        # A call with one answer is a stream of one on the wire.
        forward_one = partial(_forward, channel, method, self._backends.peers)
        return grpc.unary_stream_rpc_method_handler(forward_one)

    async def _upload(
        self, channel: grpc.Channel, method: str, requests: AsyncIterator[bytes], context: Any
    ) -> bytes:
        if self._uploads >= MAX_UPLOADS:
            message = f"the gateway passes on {MAX_UPLOADS} streams of requests, as many as it may; try again"
            await context.abort(grpc.StatusCode.UNAVAILABLE, message)
        self._uploads += 1
        try:
            return await _forward_requests(channel, method, self._backends.peers, requests, context)
        finally:
            self._uploads -= 1


async def _forward(
    channel: grpc.aio.Channel, method: str, peers: ForwardedPeers, request: bytes, context: Any
) -> AsyncIterator[bytes]:
    stub: Any = channel.unary_stream(method)
    call = stub(request, timeout=context.time_remaining(), metadata=_metadata(context, peers))
    # gRPC keeps this frame with an aborted call until the collector comes by: it does not name the request.
    del request
    try:
        async for response in call:
            yield response
        context.set_trailing_metadata(await call.trailing_metadata())
        return
    except grpc.aio.AioRpcError as failure:
        context.set_trailing_metadata(failure.trailing_metadata())
        code, details = failure.code(), failure.details() or ""
    finally:
        call.cancel()
        del call
    await context.abort(code, details)


async def _forward_requests(
    channel: grpc.Channel, method: str, peers: ForwardedPeers, requests: AsyncIterator[bytes], context: Any
) -> bytes:
    """Passes on a call that streams its requests.

    By a channel that blocks, in a thread that gRPC makes for the call. Where a service refuses a call before
    it has read all requests, grpc.aio 1.85 reports INTERNAL instead in up to half of the calls: whenever a
    write of its own failed first.
    """
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    stub: Any = channel.stream_unary(method)
    call = stub.future(
        _blocking(requests, loop), timeout=context.time_remaining(), metadata=_metadata(context, peers)
    )
    call.add_done_callback(lambda _: loop.call_soon_threadsafe(ended.set))
    try:
        await ended.wait()
    finally:
        call.cancel()
    context.set_trailing_metadata(call.trailing_metadata())
    if call.code() is not grpc.StatusCode.OK:
        await context.abort(call.code(), call.details() or "")
    response: bytes = call.result()
    return response


def _blocking(requests: AsyncIterator[bytes], loop: asyncio.AbstractEventLoop) -> Iterator[bytes]:
    """The requests of a caller, for a thread that waits for each."""

    async def following() -> bytes | None:
        return await anext(requests, None)

    while True:
        try:
            request = asyncio.run_coroutine_threadsafe(following(), loop).result()
        except (grpc.aio.BaseError, CancelledError, RuntimeError):
            return  # the caller's call has ended
        if request is None:
            return
        yield request


def _metadata(context: Any, peers: ForwardedPeers) -> list[tuple[str, str | bytes]]:
    """What the client forwarded, without what each connection says for itself, and who the client is."""
    forwarded = [
        (key, value)
        for key, value in context.invocation_metadata()
        if not key.startswith("grpc-") and key not in {"user-agent", PEER_HEADER}
    ]
    return [*forwarded, *peers.metadata(context.peer())]
