"""A running service removes points that are too old, once an hour."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any, cast

import pytest
from support.clocks import ManualClock, ManualSleep
from support.services.in_process import serving
from support.services.metrics import block
from support.services.processes.killable import READER, ServiceProcess, some_run
from support.waiting import wait_until_async

from resolute.api.metrics.v1 import metrics_service_pb2 as api
from resolute.api.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
from resolute_metrics.limits import Limits
from resolute_metrics.service import metrics_service
from resolute_serving.server.service import Blueprint, Environment, Service

HOUR = 3600.0
RUN = some_run()
SERIES = api.GetSeriesRequest(trial_id=RUN.trial_id, group="training", name="loss")


def report(at: float) -> api.IngestReportsRequest:
    made = block("training", [0], [1], loss=[0.5])
    made.times[:] = [at]
    return api.IngestReportsRequest(
        trial_id=RUN.trial_id,
        run=RUN.run,
        source="rank0",
        experiment_id=RUN.experiment_id,
        first_sequence=0,
        count=1,
        blocks=[made],
    )


def test_points_go_within_an_hour_of_their_day(tmp_path: Path) -> None:
    clock = ManualClock()

    async def scenario() -> None:
        pauses = ManualSleep()

        def create(environment: Environment) -> Service:
            return metrics_service(environment, limits=Limits(), retention_days=1.0, sleep=pauses)

        blueprint = Blueprint(name="metrics", package="resolute_metrics", create=create)
        async with serving([blueprint], tmp_path, clock=clock) as running:
            writer = running.channel(running.trial_token(RUN))
            reader = running.channel(running.user_token())
            await wait_until_async(lambda: len(pauses.asked) == 1)
            await cast("Any", MetricsServiceStub(writer)).IngestReports(report(clock.time()))
            history = []
            for _ in range(26):
                clock.advance(HOUR)
                await pauses.end()
                history.append(len((await cast("Any", MetricsServiceStub(reader)).GetSeries(SERIES)).steps))
            assert history == [1] * 24 + [0] * 2
            assert set(pauses.asked) == {HOUR}
            await writer.close()
            await reader.close()

    asyncio.run(scenario())


@pytest.mark.integration
def test_the_variable_of_a_service_that_is_deployed_alone_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def points(service: ServiceProcess) -> int:
        with service.channel(READER) as channel:
            return len(MetricsServiceStub(channel).GetSeries(SERIES, timeout=10).steps)

    with ServiceProcess("metrics", tmp_path) as service, service.channel(RUN) as channel:
        MetricsServiceStub(channel).IngestReports(report(time.time() - 25 * HOUR), timeout=10)
        assert points(service) == 1
    monkeypatch.setenv("RESOLUTE_METRICS_RETENTION_DAYS", "2")
    with ServiceProcess("metrics", tmp_path) as service:
        assert points(service) == 1
    monkeypatch.setenv("RESOLUTE_METRICS_RETENTION_DAYS", "1")
    with ServiceProcess("metrics", tmp_path) as service:
        asyncio.run(wait_until_async(lambda: points(service) == 0))
