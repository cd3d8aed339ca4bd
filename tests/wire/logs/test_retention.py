"""A running service removes lines that are too old, once an hour."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any, cast

import pytest
from support.clocks import ManualClock, ManualSleep
from support.services.in_process import serving
from support.services.logs import columns, line
from support.services.processes.killable import READER, ServiceProcess, some_run
from support.waiting import wait_until_async

from resolute.api.logs.v1 import line_pb2
from resolute.api.logs.v1 import logs_service_pb2 as api
from resolute.api.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from resolute_logs.service import logs_service
from resolute_serving.ingestion.byte_limits import ByteLimits
from resolute_serving.server.service import Blueprint, Environment, Service

HOUR = 3600.0
RUN = some_run()


def batch(*texts: str, seconds: float, first: int = 0) -> api.IngestLinesRequest:
    return api.IngestLinesRequest(
        trial_id=RUN.trial_id,
        run=RUN.run,
        source="logs",
        experiment_id=RUN.experiment_id,
        first_sequence=first,
        lines=columns(line(text, seconds=seconds) for text in texts),
    )


def test_lines_go_within_an_hour_of_their_day(tmp_path: Path) -> None:
    clock = ManualClock()

    async def scenario() -> None:
        pauses = ManualSleep()

        def create(environment: Environment) -> Service:
            return logs_service(
                environment, limits=ByteLimits(prefix="RESOLUTE_LOGS"), retention_days=1.0, sleep=pauses
            )

        blueprint = Blueprint(name="logs", package="resolute_logs", create=create)
        async with serving([blueprint], tmp_path, clock=clock) as running:
            writer = running.channel(running.trial_token(RUN))
            reader = running.channel(running.user_token())
            stub = cast("Any", LogsServiceStub(writer))

            async def left() -> list[str]:
                request = api.ListLinesRequest(filter=line_pb2.LineFilter(trial_id=RUN.trial_id))
                found = await cast("Any", LogsServiceStub(reader)).ListLines(request)
                return [each.message for each in found.lines]

            await wait_until_async(lambda: len(pauses.asked) == 1)
            await stub.IngestLines(batch("first", seconds=clock.time()))
            await stub.IngestLines(batch("second", seconds=clock.time() + 10 * HOUR, first=1))
            history = []
            for _ in range(36):
                clock.advance(HOUR)
                await pauses.end()
                history.append(await left())
            assert history == [["first", "second"]] * 24 + [["second"]] * 10 + [[]] * 2
            assert set(pauses.asked) == {HOUR}
            await writer.close()
            await reader.close()

    asyncio.run(scenario())


@pytest.mark.integration
def test_the_variable_of_a_service_that_is_deployed_alone_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    request = api.ListLinesRequest(filter=line_pb2.LineFilter(trial_id=RUN.trial_id))

    def left(service: ServiceProcess) -> list[str]:
        with service.channel(READER) as channel:
            return [each.message for each in LogsServiceStub(channel).ListLines(request, timeout=10).lines]

    with ServiceProcess("logs", tmp_path) as service, service.channel(RUN) as channel:
        LogsServiceStub(channel).IngestLines(batch("old", seconds=now - 49 * HOUR), timeout=10)
        LogsServiceStub(channel).IngestLines(batch("young", seconds=now - 47 * HOUR, first=1), timeout=10)
        assert left(service) == ["old", "young"]
    monkeypatch.setenv("RESOLUTE_LOGS_RETENTION_DAYS", "2")
    with ServiceProcess("logs", tmp_path) as service:
        asyncio.run(wait_until_async(lambda: left(service) == ["young"]))
