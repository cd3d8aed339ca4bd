"""Whoever reaches the port of metrics holds neither threads nor descriptors without end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.request import urlopen

import pytest

from resolute_serving.observability import metrics_endpoint
from resolute_serving.observability.gauges import Gauge
from resolute_serving.observability.metrics_endpoint import MOST_CONNECTIONS, MetricsEndpoint

SECONDS = 30.0


async def gauges() -> list[Gauge]:
    return [Gauge(name="resolute_answers", help="Of a test.", value=42.0)]


@contextmanager
def silent(port: int, count: int) -> Iterator[list[socket.socket]]:
    """Connections that say nothing."""
    with ExitStack() as opened:
        yield [
            opened.enter_context(socket.create_connection(("127.0.0.1", port), SECONDS)) for _ in range(count)
        ]


def scrape(port: int) -> str:
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=SECONDS) as response:
        return str(response.read().decode())


def test_connections_that_say_nothing_are_bounded_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("prometheus_client")

    async def scenario() -> None:
        endpoint = MetricsEndpoint(gauges, host="127.0.0.1", port=0)
        endpoint.start()
        try:
            with silent(endpoint.port, MOST_CONNECTIONS + 1) as connections:
                assert await asyncio.to_thread(connections[-1].recv, 1) == b"", "it is beyond the limit"
                # The others are closed when their time is over, and their threads are free again.
                assert await asyncio.to_thread(connections[0].recv, 1) == b""
                for connection in connections[1:-1]:
                    assert await asyncio.to_thread(connection.recv, 1) == b""
            assert "resolute_answers 42.0" in await asyncio.to_thread(scrape, endpoint.port)
        finally:
            await asyncio.to_thread(endpoint.stop)

    monkeypatch.setattr(metrics_endpoint._Handler, "timeout", 1.0)
    asyncio.run(scenario())
