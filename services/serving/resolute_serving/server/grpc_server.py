"""The gRPC server of every service: options, health, reflection, graceful stop."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import grpc
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer
from grpc_reflection.v1alpha import reflection_pb2_grpc
from grpc_reflection.v1alpha._async import ReflectionServicer
from grpc_reflection.v1alpha.reflection import SERVICE_NAME

import resolute_serving.observability.core_log  # noqa: F401 - for servers of all programs
from resolute.contracts.calls.keepalive import KEEPALIVE_OPTIONS, TOLERANCE_OPTIONS
from resolute.contracts.calls.message_sizes import MAX_ANSWER_BYTES
from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.contracts.tracing import open_spans
from resolute_serving.auth.call_access import CallAccess
from resolute_serving.auth.forwarded_peers import ForwardedPeers
from resolute_serving.auth.open_streams import OpenStreams
from resolute_serving.auth.refusals import Refusals
from resolute_serving.auth.tokens import TokenVerifier
from resolute_serving.bounds.limits import MAX_MESSAGE_BYTES
from resolute_serving.bounds.streams import StreamLimits
from resolute_serving.observability.gauges import CallCounts
from resolute_serving.server.calls import Calls
from resolute_serving.server.client_versions import OLDEST_SDK, ClientVersions
from resolute_serving.server.health import HealthMonitor
from resolute_serving.server.service import Service
from resolute_serving.tls import Listener, ServerTls

if TYPE_CHECKING:
    from resolute_serving.observability.metrics_endpoint import MetricsEndpoint

_log = structlog.get_logger("server")

_HANDSHAKE_SECONDS = 10
_MOST_CONNECTIONS = 20_000
_MOST_CALLS_OF_CONNECTION = 20_000
"""A gateway passes on the calls of all its clients by one connection."""
MOST_CALLS = 40_000
"""Calls at a time, streams among them. Each takes some 20 KiB before anything of it is known."""
_SECONDS_OF_STREAMS = 1.0
"""That open streams get to end by themselves when the server stops."""
_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_ANSWER_BYTES),
    *KEEPALIVE_OPTIONS,
    *TOLERANCE_OPTIONS,
    # Thousands of watchers may reconnect at once; with its default the core sheds some of them at random.
    ("grpc.server.max_pending_requests", 20_000),
    ("grpc.server.max_pending_requests_hard_limit", 40_000),
    # Two servers on one port must be an error, not a lottery.
    ("grpc.so_reuseport", 0),
    ("grpc.max_concurrent_streams", _MOST_CALLS_OF_CONNECTION),
    # A connection that says nothing holds a descriptor.
    ("grpc.server_handshake_timeout_ms", _HANDSHAKE_SECONDS * 1000),
)


def server_options(*, servers: int = 1) -> tuple[tuple[str, int], ...]:
    """Options of every gRPC server: limits on messages, calls and connections.

    At most half of the process's descriptors are for connections: its databases and files need the others.

    Args:
        servers: Servers of the process, which share them.
    """
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    connections = min(_MOST_CONNECTIONS, descriptors // 2) // servers
    return (*_OPTIONS, ("grpc.max_allowed_incoming_connections", connections))


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """The settings of a server's ports and limits."""

    host: str = "127.0.0.1"
    """Address to bind."""
    port: int = 0
    """Port to bind; zero picks a free one."""
    tls: ServerTls | None = None
    """Its certificate; None for a plain port."""
    insecure: bool = False
    """Whether other machines may reach a plain port."""
    second: Listener | None = None
    """Another port for the same services; None for none."""
    runs: Listener | None = None
    """Port for the calls of runs, which do not wait behind other calls there; None for none. gRPC hands over
    the calls of a server one by one, and drops a call that has waited for 30 seconds. If people opened
    thousands of streams at once, runs would lose their leases."""
    reflection: bool = False
    """Whether tools may ask the server for its contract."""
    grace: float = 5.0
    """Seconds that calls in progress get when the server stops."""
    oldest_client: str = OLDEST_SDK
    """Oldest version of the SDK whose calls are accepted."""
    metrics_port: int | None = None
    """Port that serves numbers for Prometheus, on the same address; None for none."""
    streams: StreamLimits = field(default_factory=StreamLimits)
    """How many streams may be open at a time."""


class Server:
    """A gRPC server with its services.

    Args:
        services: The services of the server.
        verifier: Verifies tokens.
        settings: Settings of its ports.
        refusals: Counts refused calls, for the audit log.
        peers: Reads the caller of a gateway; None to trust no gateway.
    """

    def __init__(
        self,
        services: Sequence[Service],
        *,
        verifier: TokenVerifier,
        settings: ServerSettings,
        refusals: Refusals,
        peers: ForwardedPeers | None = None,
    ) -> None:
        self._services = services
        self._settings = settings
        counts = CallCounts()
        self._spans = open_spans(
            f"resolute-{services[0].name}" if len(services) == 1 else "resolute", os.environ
        )
        self._streams = OpenStreams(verifier, limits=settings.streams)
        access = CallAccess(
            verifier, streams=self._streams, refusals=refusals, peers=peers or ForwardedPeers()
        )
        self.calls = Calls(
            access,
            counts,
            ClientVersions(settings.oldest_client),
            lookups={name: service.access_lookup for service in services for name in service.grpc_names},
            spans=self._spans,
        )
        """What it answers."""
        count = 1 if settings.runs is None else 2
        self._servers = [
            grpc.aio.server(
                handlers=(self.calls,),
                options=server_options(servers=count),
                maximum_concurrent_rpcs=MOST_CALLS // count,
            )
            for _ in range(count)
        ]
        self._health = HealthServicer()
        self.health_monitor = HealthMonitor(
            services, calls=counts, set_health=self._set_health, clock=SYSTEM_CLOCK
        )
        """Knows how the services are."""
        self._metrics_endpoint: MetricsEndpoint | None = None
        self.port = 0
        """The port that it listens on, once started."""

    async def start(self) -> None:
        """Listens, starts the services' background work, then reports itself healthy.

        Raises:
            UnavailableError: The port is taken.
            FailedPreconditionError: Other machines would reach a plain port.
        """
        # It takes handlers as a server does; gRPC generates no Protocol for that.
        calls = cast("grpc.aio.Server", self.calls)
        for service in self._services:
            service.register(calls)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, calls)
        names = [name for service in self._services for name in service.grpc_names]
        if self._settings.reflection:
            described = ReflectionServicer([*names, SERVICE_NAME])
            reflection_pb2_grpc.add_ServerReflectionServicer_to_server(described, calls)
        settings = self._settings
        listener = Listener(
            host=settings.host, port=settings.port, tls=settings.tls, insecure=settings.insecure
        )
        self.port = listener.add_to(self._servers[0])
        if settings.second is not None:
            settings.second.add_to(self._servers[0])
        if settings.runs is not None:
            settings.runs.add_to(self._servers[-1])
        for server in self._servers:
            await server.start()
        self._streams.start()
        for service in self._services:
            await service.start()
        for name in ["", *names]:
            await self._set_health(name, True)
        self.health_monitor.start()
        if self._settings.metrics_port is not None:
            # Here, because it loads an HTTP server, which nothing else of a cluster needs.
            from resolute_serving.observability.metrics_endpoint import MetricsEndpoint

            self._metrics_endpoint = MetricsEndpoint(
                self.health_monitor.gauges,
                host=self._settings.host,
                port=self._settings.metrics_port,
                tls=self._settings.tls,
            )
            self._metrics_endpoint.start()
        _log.info("serving", port=self.port, services=[service.name for service in self._services])

    async def stop(self) -> None:
        """Reports itself unhealthy, ends watches and background work, lets calls finish, closes."""
        await self._health.enter_graceful_shutdown()
        await self.health_monitor.stop()
        if self._metrics_endpoint is not None:
            await asyncio.to_thread(self._metrics_endpoint.stop)
        for service in reversed(self._services):
            await service.stop()
        closing = [
            asyncio.create_task(server.stop(self._settings.grace), name="server-stop")
            for server in self._servers
        ]
        # Streams end by themselves now, but not those whose clients read nothing.
        await asyncio.wait(closing, timeout=_SECONDS_OF_STREAMS)
        self._streams.end()
        await asyncio.gather(*closing)
        await self._streams.stop()
        if self._spans is not None:
            await asyncio.to_thread(self._spans.close)
        _log.info("stopped", port=self.port)

    async def _set_health(self, name: str, healthy: bool) -> None:
        status = health_pb2.HealthCheckResponse
        await self._health.set(name, status.SERVING if healthy else status.NOT_SERVING)
