"""Numbers for Prometheus over HTTP. prometheus-client is loaded only where they are wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from resolute.errors import FailedPreconditionError, UnavailableError
from resolute_serving.observability.gauges import Gauge, Kind
from resolute_serving.tls import ServerTls

_SCRAPE_SECONDS = 10.0


class MetricsEndpoint:
    """Serves ``/metrics`` in a thread of its own, from ``start`` to ``stop``.

    Args:
        collect: Gives the numbers; runs in the event loop that called ``start``.
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
        self._server: Any = None
        self._thread: Any = None

    def start(self) -> None:
        """Begins to serve.

        Raises:
            FailedPreconditionError: prometheus-client is not installed.
            UnavailableError: The port is taken.
        """
        try:
            from prometheus_client import CollectorRegistry, start_http_server
        except ImportError:
            raise FailedPreconditionError(
                "numbers for Prometheus need prometheus-client; run `pip install 'resolute-train[server]'`"
            ) from None
        self._loop = asyncio.get_running_loop()
        registry = CollectorRegistry()
        registry.register(self)
        try:
            files: dict[str, Any] = {} if self._tls is None else self._tls.files.names
            self._server, self._thread = start_http_server(self._port, self._host, registry, **files)
        except OSError as error:
            raise UnavailableError(
                f"cannot serve numbers on {self._host}:{self._port} ({error}); choose another port"
            ) from error
        if self._tls is not None:
            self._tls.replace_in(self._server.socket.context)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_port)

    def stop(self) -> None:
        """Ends the thread. Not to be called in the event loop, which an answer may wait for."""
        if self._server is not None:
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


async def _await(collect: Callable[[], Awaitable[Sequence[Gauge]]]) -> Sequence[Gauge]:
    return await collect()
