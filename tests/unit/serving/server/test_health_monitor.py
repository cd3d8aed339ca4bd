"""The monitor of services ends when it is asked to, whatever it waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest
from support.clocks import ManualClock

from resolute_serving.observability.gauges import CallCounts, Gauge
from resolute_serving.server import health
from resolute_serving.server.health import HealthMonitor


class Answering:
    """A service; something happens right after its answer, before that has arrived."""

    name = "answering"
    grpc_names: Sequence[str] = ()

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def gauges(self) -> Sequence[Gauge]:
        asyncio.get_running_loop().call_soon(self.asked.set)
        return []


async def ignore(name: str, healthy: bool) -> None:
    """Takes the health of a service."""


@pytest.mark.timeout(60)
def test_it_ends_also_where_the_end_comes_with_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_CHECK_SECONDS", 0.0)

    async def body() -> None:
        service = Answering()
        monitor = HealthMonitor(
            cast("Any", [service]), calls=CallCounts(), set_health=ignore, clock=ManualClock()
        )
        monitor.start()
        await service.asked.wait()
        await monitor.stop()

    asyncio.run(body())
