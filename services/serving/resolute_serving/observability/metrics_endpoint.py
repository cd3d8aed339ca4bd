"""Serves gauges to Prometheus over HTTP. prometheus-client is loaded only if the endpoint is enabled."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from resolute.contracts.distribution import install_command
from resolute.errors import FailedPreconditionError, UnavailableError
from resolute_serving.observability.gauges import Gauge, Kind
from resolute_serving.tls import ServerTls

MOST_CONNECTIONS = 16
"""At a time: each has a thread."""
REQUEST_SECONDS = 10
"""How long a connection may say nothing."""
_SCRAPE_SECONDS = 10.0


class MetricsEndpoint:
    """Serves ``/metrics`` in a thread of its own, from ``start`` to ``stop``.

    Args:
        collect: Returns the numbers. It runs in the event loop that called ``start``.
        host: Address to bind.
        port: Port to bind.
        tls: Its certificate; None for plain HTTP.
    """

    def __init__(
        self,
        collect: Callable[[], Awaitable[Sequence[Gauge]]],
        *,
        host: str,
        port: int,
        tls: ServerTls | None = None,
    ) -> None:
        self._collect = collect
        self._host = host
        self._port = port
        self._tls = tls
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begins to serve.

        Raises:
            FailedPreconditionError: prometheus-client is not installed.
            UnavailableError: The port is taken.
        """
        try:
            from prometheus_client import CollectorRegistry, make_wsgi_app
        except ImportError:
            raise FailedPreconditionError(
                f"metrics for Prometheus need prometheus-client; run `{install_command('server')}`"
            ) from None
        self._loop = asyncio.get_running_loop()
        registry = CollectorRegistry()
        registry.register(self)
        try:
            server = _Server(self._host, self._port, tls=self._tls)
        except OSError as error:
            raise UnavailableError(
                f"cannot serve metrics on {self._host}:{self._port} ({error}); choose another port"
            ) from error
        server.set_app(make_wsgi_app(registry))
        self._server = server
        self._thread = threading.Thread(target=server.serve_forever, name="metrics-endpoint", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return 0 if self._server is None else int(self._server.server_port)

    def stop(self) -> None:
        """Ends the thread. Not to be called in the event loop, which an answer may wait for."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = None

    def describe(self) -> list[Any]:
        """Tells the registry nothing in advance, so that it does not collect when this is registered."""
        return []

    def collect(self) -> Iterator[Any]:
        """Called by the registry, in the thread of a request."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        assert self._loop is not None
        future = asyncio.run_coroutine_threadsafe(_await(self._collect), self._loop)
        families: dict[str, Any] = {}
        for reading in future.result(_SCRAPE_SECONDS):
            if reading.name not in families:
                family = CounterMetricFamily if reading.kind is Kind.COUNTER else GaugeMetricFamily
                families[reading.name] = family(reading.name, reading.help, labels=list(reading.labels))
            families[reading.name].add_metric(list(reading.labels.values()), reading.value)
        yield from families.values()


class _Handler(WSGIRequestHandler):
    timeout = REQUEST_SECONDS

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of its base
        """Says nothing of single requests."""


class _Server(ThreadingMixIn, WSGIServer):
    """Answers each connection in a thread of its own, up to a limit."""

    daemon_threads = True

    def __init__(self, host: str, port: int, *, tls: ServerTls | None) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._free = threading.Semaphore(MOST_CONNECTIONS)
        super().__init__((host, port), _Handler)
        if tls is not None:
            # A handshake belongs to the thread and the time limit of its connection.
            self.socket = tls.context().wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )

    def verify_request(self, request: object, client_address: object) -> bool:
        """Whether a connection gets a thread; those beyond the limit are closed."""
        return self._free.acquire(blocking=False)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answers a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Leaves it to the other side that it was late, or spoke something else."""


async def _await(collect: Callable[[], Awaitable[Sequence[Gauge]]]) -> Sequence[Gauge]:
    return await collect()
