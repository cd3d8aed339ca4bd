"""Checks the services of one server every few seconds: whether they work, and keep up with their load."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence

import structlog

from resolute.contracts.calls.deadlines import in_time
from resolute.contracts.clock import Clock
from resolute.contracts.tasks import end_tasks
from resolute_serving.observability.gauges import CallCounts, Gauge, GaugeSource
from resolute_serving.server.service import Service

_CHECK_SECONDS = 10.0
_TIMEOUT_SECONDS = 5.0
"""A service that does not tell its numbers in this time cannot work."""
_LAG_SECONDS = 0.5
_log = structlog.get_logger("health_monitor")

SetHealth = Callable[[str, bool], Awaitable[None]]
"""Called with the full name of a gRPC service and whether it serves."""


class HealthMonitor:
    """Updates the health of services, and collects their gauges.

    Args:
        services: The services of the server.
        calls: Counts its calls.
        set_health: Called when the health of a service changes.
        clock: Measures the delay of the event loop.
    """

    def __init__(
        self, services: Sequence[Service], *, calls: CallCounts, set_health: SetHealth, clock: Clock
    ) -> None:
        self._services = services
        self._calls = calls
        self._set_health = set_health
        self._clock = clock
        self._unhealthy: dict[str, str] = {}
        self._lag: float | None = None
        self._stopped = False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begins to check."""
        self._tasks = [asyncio.create_task(self._check_periodically(), name="health_monitor")]

    async def stop(self) -> None:
        """Ends."""
        self._stopped = True
        await end_tasks(*self._tasks)

    async def gauges(self) -> list[Gauge]:
        """Reads every number now; of a service that cannot tell its own, only that."""
        gauges_now = [
            Gauge(
                name="resolute_event_loop_lag_seconds",
                help="Longest time by which the event loop was late since this was last read.",
                value=self._take_lag(),
            ),
            *self._calls.gauges(),
        ]
        for service in self._services:
            own = await self._check_service(service)
            gauges_now += own or []
            gauges_now.append(
                Gauge(
                    name="resolute_up",
                    help="Whether a service can work.",
                    value=float(own is not None),
                    labels={"service": service.name},
                )
            )
        return gauges_now

    async def check(self) -> None:
        """Asks every service once how it is."""
        for service in self._services:
            await self._check_service(service)

    async def _check_service(self, service: Service) -> Sequence[Gauge] | None:
        """The numbers of a service; None if it cannot tell them, and is unhealthy by that."""
        if not isinstance(service, GaugeSource):
            return []
        try:
            own = await in_time(service.gauges(), _TIMEOUT_SECONDS, f"the health check of {service.name}")
        except Exception as failure:  # noqa: BLE001 - whatever it is, the service cannot work
            reason = str(failure) or type(failure).__name__
            if service.name not in self._unhealthy:
                _log.warning("a service cannot work", service=service.name, reason=reason)
                await self._report_health(service, healthy=False)
            self._unhealthy[service.name] = reason
            return None
        if self._unhealthy.pop(service.name, None) is not None:
            _log.warning("a service can work again", service=service.name)
            await self._report_health(service, healthy=True)
        return own

    async def _report_health(self, service: Service, *, healthy: bool) -> None:
        for name in service.grpc_names:
            await self._set_health(name, healthy)
        await self._set_health("", healthy and not self._unhealthy)

    async def _check_periodically(self) -> None:
        # Before Python 3.12 a wait with a deadline loses the cancellation that comes as it ends.
        while not self._stopped:
            await asyncio.sleep(_CHECK_SECONDS)
            with contextlib.suppress(Exception):
                await self.check()

    async def _measure_lag(self) -> None:
        while True:
            due = self._clock.monotonic() + _LAG_SECONDS
            await asyncio.sleep(_LAG_SECONDS)
            self._lag = max(self._lag or 0.0, self._clock.monotonic() - due)

    def _take_lag(self) -> float:
        """The lag since the last time; zero at first, and measured from then on, as it is read."""
        if self._lag is None:
            self._lag = 0.0
            self._tasks.append(asyncio.create_task(self._measure_lag(), name="loop-lag"))
        lag, self._lag = self._lag, 0.0
        return lag
