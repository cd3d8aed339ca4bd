"""Health follows what services can do, and Prometheus is served their numbers."""

from __future__ import annotations

import asyncio
import urllib.request
from pathlib import Path

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client.parser import text_string_to_metric_families
from support.clocks import ManualClock
from support.clusters.all_services import AllServices, all_services

from resolute_serving.observability.gauges import CallCounts
from resolute_serving.observability.metrics_endpoint import MetricsEndpoint
from resolute_serving.server.health import HealthMonitor


class Health:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.states: dict[str, bool] = {}

    async def set(self, name: str, healthy: bool) -> None:
        self.states[name] = healthy


def health_monitor(service: AllServices, health: Health, calls: CallCounts | None = None) -> HealthMonitor:
    return HealthMonitor(
        service.running.services, calls=calls or CallCounts(), set_health=health.set, clock=ManualClock()
    )


@pytest.mark.timeout(60)
def test_numbers_of_all_services_are_served_to_prometheus(tmp_path: Path) -> None:
    async def body() -> dict[str, dict[str, float]]:
        async with all_services(tmp_path) as service:
            created = await service.create(paused=True)
            async for seen in service.watch(created.number):
                if seen.trial_count == 3:
                    break
            calls = CallCounts()
            calls.add("/a.B/C", "OK", 0.25)
            calls.add("/a.B/C", "OK", 0.5)
            exposition = MetricsEndpoint(
                health_monitor(service, Health(), calls).gauges, host="127.0.0.1", port=0
            )
            exposition.start()
            try:
                url = f"http://127.0.0.1:{exposition.port}/metrics"
                text = await asyncio.to_thread(lambda: urllib.request.urlopen(url).read().decode())
            finally:
                await asyncio.to_thread(exposition.stop)
        return {
            family.name: {",".join(sample.labels.values()): sample.value for sample in family.samples}
            for family in text_string_to_metric_families(text)
        }

    found = asyncio.run(body())
    assert found["resolute_trials"] == {"PAUSED": 3.0}
    assert found["resolute_experiments"] == {"PAUSED": 1.0}
    assert found["resolute_calls"]["OK,/a.B/C"] == 2.0
    assert found["resolute_call_seconds"]["OK,/a.B/C"] == 0.75
    assert set(found["resolute_up"].values()) == {1.0}
    assert set(found["resolute_up"]) == {
        "searcher",
        "metrics",
        "logs",
        "checkpoints",
        "preemption",
        "gateway",
        "experiments",
    }
    for name in (
        "resolute_event_loop_lag_seconds",
        "resolute_oldest_unacknowledged_action_seconds",
        "resolute_oldest_spool_seconds",
        "resolute_outbox_messages",
        "resolute_scheduler_pass_seconds",
        "resolute_signal_watchers",
    ):
        assert len(found[name]) == 1, name
    assert len(found["resolute_database_waiting_writes"]) == 5


@pytest.mark.timeout(60)
def test_service_whose_database_is_gone_is_unhealthy_and_the_others_are_not(tmp_path: Path) -> None:
    async def body() -> None:
        async with all_services(tmp_path) as service:
            health = Health()
            watch = health_monitor(service, health)
            await watch.check()
            assert health.states == {}
            service.database.close()
            await watch.check()
            assert health.states[""] is False
            assert health.states["resolute.api.experiments.v1.TrialsService"] is False
            assert not any("logs" in name for name in health.states)
            up = {
                one.labels["service"]: one.value for one in await watch.gauges() if one.name == "resolute_up"
            }
            assert up.pop("experiments") == 0.0
            assert set(up.values()) == {1.0}

    asyncio.run(body())


@pytest.mark.timeout(60)
def test_health_can_be_asked_for_without_a_token(tmp_path: Path) -> None:
    async def body() -> None:
        async with all_services(tmp_path) as service:
            stub = health_pb2_grpc.HealthStub(service.channel)
            answer = await stub.Check(health_pb2.HealthCheckRequest(service=""))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING

    asyncio.run(body())
