"""One address for services that run apart: ``python -m resolute_serving.gateway``.

Supervisors, trials and commands know one address. The gateway passes each call on to the service that it is
for, unread, with its metadata, deadline and errors. It knows no tokens: the services check those.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any, cast

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer

from resolute.contracts.calls.keepalive import KEEPALIVE_OPTIONS
from resolute.errors import ResoluteError
from resolute_serving.observability.logs import configure_logs
from resolute_serving.server.bootstrap import shutdown_requested
from resolute_serving.server.grpc_server import SERVER_OPTIONS
from resolute_serving.server.settings import Settings

_CHANNEL_OPTIONS: tuple[tuple[str, str | int], ...] = (
    *KEEPALIVE_OPTIONS,
    ("grpc.max_receive_message_length", 16 * 1024 * 1024),
    ("grpc.max_send_message_length", 16 * 1024 * 1024),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.enable_http_proxy", 0),
    # The caller repeats what may be repeated.
    ("grpc.enable_retries", 0),
)
_PREFIX = "/resolute.api."
_GRACE_SECONDS = 5.0


class Gateway(grpc.GenericRpcHandler):
    """Passes calls on by the name of their service.

    Args:
        addresses: ``host:port`` by short name of the service, such as ``metrics``.
    """

    def __init__(self, addresses: Mapping[str, str]) -> None:
        self._channels = {
            name: grpc.aio.insecure_channel(address, options=_CHANNEL_OPTIONS)
            for name, address in addresses.items()
        }

    def service(self, handler_call_details: Any) -> Any:
        """Finds out where a call goes; None, which the caller sees as UNIMPLEMENTED, for nowhere."""
        method = handler_call_details.method
        name = method.removeprefix(_PREFIX).partition(".")[0] if method.startswith(_PREFIX) else ""
        channel = self._channels.get(name)
        if channel is None:
            return None
        # A call with one request or one answer is a stream of one on the wire.
        return grpc.stream_stream_rpc_method_handler(partial(_forward, channel, method))

    async def close(self) -> None:
        """Closes the connections to the services."""
        for channel in self._channels.values():
            await channel.close()


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


async def serve(settings: Settings) -> None:
    """Serves until a signal ends it."""
    gateway = Gateway(settings.addresses)
    server = grpc.aio.server(options=SERVER_OPTIONS)
    server.add_generic_rpc_handlers((gateway,))
    health = HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    port = server.add_insecure_port(f"{settings.host}:{settings.port}")
    ended = shutdown_requested()
    await server.start()
    await health.set("", health_pb2.HealthCheckResponse.SERVING)
    sys.stdout.write(f"gateway listens on {settings.host}:{port}\n")
    sys.stdout.flush()
    await ended.wait()
    await server.stop(_GRACE_SECONDS)
    await gateway.close()


def main() -> None:
    """Serves by the settings in the environment."""
    try:
        settings = Settings.from_environment(os.environ, service="gateway")
    except ResoluteError as error:
        sys.exit(f"resolute_serving.gateway: {error}")
    configure_logs(level=settings.log_level, service="gateway")
    asyncio.run(serve(settings))


if __name__ == "__main__":
    main()
