"""``python -m resolute_gateway``: one address for services that run separately, for gRPC and for HTTP."""

from __future__ import annotations

import resolute_serving.observability.core_log  # noqa: F401 - before gRPC is imported

# isort: split
import asyncio
import os
import sys
from collections.abc import Mapping

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.contracts.run.open_files import raise_limit
from resolute.errors import ResoluteError
from resolute_gateway.backends import Backends
from resolute_gateway.bounded_calls import BoundedCalls
from resolute_gateway.grpc_router import GrpcRouter
from resolute_gateway.requirements import missing_for_http
from resolute_gateway.rpc.sign_in import SignInCheck
from resolute_gateway.settings import HttpSettings, http_port, serves_http
from resolute_gateway.watch.merged import MergedWatches
from resolute_gateway.watch.service import GatewayServicer
from resolute_gateway.watch.unchecked import UncheckedWatch
from resolute_serving.observability.logs import configure_logs
from resolute_serving.server.bootstrap import shutdown_requested
from resolute_serving.server.grpc_server import MOST_CALLS, server_options
from resolute_serving.server.interpreter import put_calls_first
from resolute_serving.server.settings import Settings
from resolute_serving.tls import Listener

_GRACE_SECONDS = 5.0


async def serve(settings: Settings, variables: Mapping[str, str]) -> None:
    """Serves until a signal ends it."""
    server = grpc.aio.server(options=server_options(), maximum_concurrent_rpcs=MOST_CALLS)
    # HTTP makes the gateway's own calls there, like those of the services.
    own_port = server.add_insecure_port("127.0.0.1:0")
    backends = Backends(
        settings.addresses,
        tls=settings.client_tls,
        own_port=own_port,
        peers=settings.peers,
    )
    watches = MergedWatches(backends.channel)
    unchecked = UncheckedWatch(GatewayServicer(watches), SignInCheck(backends))
    server.add_generic_rpc_handlers((BoundedCalls((unchecked, GrpcRouter(backends))),))
    health = HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    listener = Listener(host=settings.host, port=settings.port, tls=settings.tls, insecure=settings.insecure)
    port = listener.add_to(server)
    ended = shutdown_requested()
    await server.start()
    await health.set("", health_pb2.HealthCheckResponse.SERVING)
    missing = missing_for_http() if serves_http(variables) else "RESOLUTE_NO_HTTP is set"
    if missing:
        _say(f"gateway listens on {settings.host}:{port}, without HTTP: {missing}")
        await ended.wait()
    else:
        # These import what HTTP needs, which need not be installed.
        from resolute_gateway.http_gateway import HttpGateway
        from resolute_gateway.listening.listening_socket import ConnectionLimits, listen

        http_settings = HttpSettings.from_environment(
            variables, cluster_id=settings.cluster_id, grpc_port=port
        )
        limits = ConnectionLimits.of_this_process(proxies=http_settings.proxies)
        opened = listen(settings.host, http_port(variables), limits=limits, clock=SYSTEM_CLOCK)
        gateway = HttpGateway(backends, http_settings, opened, tls=settings.tls)
        gateway.start()
        scheme = "HTTP" if settings.tls is None else "HTTPS"
        _say(f"gateway listens on {settings.host}:{port}, {scheme} on port {opened.getsockname()[1]}")
        await ended.wait()
        await gateway.stop()
    watches.close()
    await server.stop(_GRACE_SECONDS)
    await backends.close()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    """Serves by the settings in the environment."""
    try:
        settings = Settings.from_environment(os.environ, service="gateway")
        configure_logs(level=settings.log_level, service="gateway")
        raise_limit(os.environ)
        put_calls_first()
        asyncio.run(serve(settings, os.environ))
    except ResoluteError as error:
        sys.exit(f"resolute_gateway: {error}")


if __name__ == "__main__":
    main()
