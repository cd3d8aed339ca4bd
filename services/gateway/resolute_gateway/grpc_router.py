"""One gRPC address for services that run separately.

Supervisors, trials and commands know one address. Each call is passed on, unread, to the service that it is
for, with its metadata, deadline and errors. The router knows no tokens: the services check those.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any, cast

import grpc

from resolute_gateway.backends import Backends


class GrpcRouter(grpc.GenericRpcHandler):
    """Passes calls on by the name of their service.

    Args:
        backends: The services.
    """

    def __init__(self, backends: Backends) -> None:
        self._backends = backends

    def service(self, handler_call_details: Any) -> Any:
        """Finds out where a call goes; None, which the caller sees as UNIMPLEMENTED, for nowhere."""
        method = handler_call_details.method
        channel = self._backends.channel(method)
        if channel is None:
            return None
        # A call with one request or one answer is a stream of one on the wire.
        return grpc.stream_stream_rpc_method_handler(partial(_forward, channel, method))


async def _forward(
    channel: grpc.aio.Channel, method: str, requests: AsyncIterator[bytes], context: Any
) -> AsyncIterator[bytes]:
    call: Any = channel.stream_stream(method)(
        cast("Any", requests),
        timeout=context.time_remaining(),
        metadata=_passed_on(context.invocation_metadata()),
    )
    try:
        async for response in call:
            yield response
        context.set_trailing_metadata(await call.trailing_metadata())
    except grpc.aio.AioRpcError as failure:
        context.set_trailing_metadata(failure.trailing_metadata())
        await context.abort(failure.code(), failure.details() or "")
    finally:
        call.cancel()


def _passed_on(metadata: Any) -> list[tuple[str, str | bytes]]:
    """What the client said, without what each connection says for itself."""
    return [(key, value) for key, value in metadata if not key.startswith("grpc-") and key != "user-agent"]
