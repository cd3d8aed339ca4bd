"""The metrics service over a real connection."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import grpc
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.ports import free_port
from support.services.in_process import Running, serving
from support.services.metrics import block
from support.services.stand_ins.platform_stub import PlatformStub

from resolute.api.metrics.v1 import metrics_service_pb2 as api
from resolute.api.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
from resolute.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    PermissionDeniedError,
    UnavailableError,
)
from resolute.rpc.channel import open_channel
from resolute.spool.delivery.requests import RunIdentity
from resolute.spool.delivery.sender import SpoolSender
from resolute.spool.delivery.services import IngestResult, ReportDelivery
from resolute.spool.reader import Chunk
from resolute.spool.report_writer import ReportWriter, refusals_of
from resolute_metrics.blueprint import BLUEPRINT
from resolute_serving.context import Role, TrialRun

if TYPE_CHECKING:
    from resolute.api.metrics.v1 import metrics_service_pb2_grpc

RUN = TrialRun(
    trial_id=str(uuid.uuid4()),
    run=2,
    experiment_id=str(uuid.uuid4()),
    allocation_id=str(uuid.uuid4()),
    workspace="default",
)


class Callers:
    """Stubs for different callers, whose channels stay open as long as they do."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self._channels: list[grpc.aio.Channel] = []

    def trial(self) -> metrics_service_pb2_grpc.MetricsServiceAsyncStub:
        return self._stub(self.running.trial_token(RUN))

    def user(self, role: Role = Role.VIEWER) -> metrics_service_pb2_grpc.MetricsServiceAsyncStub:
        return self._stub(self.running.user_token(role=role))

    def service(self) -> metrics_service_pb2_grpc.MetricsServiceAsyncStub:
        stub = PlatformStub(MetricsServiceStub, signer=self.running.signer, address=self.running.address)
        self._channels.append(stub.peers.channel("*"))
        return cast("metrics_service_pb2_grpc.MetricsServiceAsyncStub", stub)

    async def close(self) -> None:
        for channel in self._channels:
            await channel.close()

    def _stub(self, token: str) -> metrics_service_pb2_grpc.MetricsServiceAsyncStub:
        channel = self.running.channel(token)
        self._channels.append(channel)
        return cast("metrics_service_pb2_grpc.MetricsServiceAsyncStub", MetricsServiceStub(channel))


Scenario = Callable[[Callers], Awaitable[None]]


def _on_a_server(tmp_path: Path, scenario: Scenario) -> None:
    async def serve() -> None:
        async with serving([BLUEPRINT], tmp_path) as running:
            callers = Callers(running)
            try:
                await asyncio.wait_for(scenario(callers), 60)
            finally:
                await callers.close()

    asyncio.run(serve())


def _batch(*, run: int = 2, first: int = 0, trial_id: str = RUN.trial_id) -> api.IngestReportsRequest:
    return api.IngestReportsRequest(
        trial_id=trial_id,
        run=run,
        source="rank0",
        experiment_id=RUN.experiment_id,
        first_sequence=first,
        count=1,
        blocks=[block("validation", [first], [10], accuracy=[0.5])],
        searcher_metric="accuracy",
    )


def test_a_trial_reports_and_a_person_reads(tmp_path: Path) -> None:
    async def scenario(callers: Callers) -> None:
        trial = callers.trial()
        assert (await trial.IngestReports(_batch())).next_sequence == 1
        person = callers.user()
        request = api.GetSeriesRequest(trial_id=RUN.trial_id, group="validation", name="accuracy")
        series = await person.GetSeries(request)
        assert (list(series.steps), list(series.values)) == ([10], [0.5])
        best = await trial.GetBestValidation(api.GetBestValidationRequest(experiment_id=RUN.experiment_id))
        assert best.experiment_best.value == 0.5

    _on_a_server(tmp_path, scenario)


def test_a_superseded_run_may_still_report_and_nobody_may_for_a_later_one(tmp_path: Path) -> None:
    async def scenario(callers: Callers) -> None:
        trial = callers.trial()
        assert (await trial.IngestReports(_batch(run=1))).next_sequence == 1
        for request in (_batch(run=3), _batch(trial_id=str(uuid.uuid4()))):
            with pytest.raises(PermissionDeniedError):
                await trial.IngestReports(request)
        with pytest.raises(PermissionDeniedError):
            await callers.user(Role.EDITOR).IngestReports(_batch())

    _on_a_server(tmp_path, scenario)


def test_only_services_delete(tmp_path: Path) -> None:
    async def scenario(callers: Callers) -> None:
        request = api.DeleteExperimentMetricsRequest(experiment_id=RUN.experiment_id)
        with pytest.raises(PermissionDeniedError):
            await callers.user(Role.ADMIN).DeleteExperimentMetrics(request)
        await callers.service().DeleteExperimentMetrics(request)
        answer = await callers.trial().IngestReports(_batch(first=5))
        assert answer.next_sequence == 6

    _on_a_server(tmp_path, scenario)


def test_errors_keep_their_class_and_facts(tmp_path: Path) -> None:
    async def scenario(callers: Callers) -> None:
        trial = callers.trial()
        with pytest.raises(FailedPreconditionError) as caught:
            await trial.IngestReports(_batch(first=3))
        assert caught.value.metadata["expected_sequence"] == "0"
        request = _batch()
        request.source = ""
        with pytest.raises(InvalidArgumentError, match="source must be") as refused:
            await trial.IngestReports(request)
        assert refused.value.violations[0].field == "source"

    _on_a_server(tmp_path, scenario)


class Forgetful(ReportDelivery):
    """Loses every answer."""

    def pack(self, source: str, chunk: Chunk) -> Callable[[], IngestResult]:
        send = super().pack(source, chunk)

        def forget() -> IngestResult:
            send()
            raise UnavailableError("the answer was lost")

        return forget


def test_a_spool_arrives_once_although_the_service_restarts_and_a_report_is_refused(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    writer = ReportWriter(spool)
    for step in range(3000):
        writer.report("training", step, {"loss": step / 2, "lr": 0.5})
    writer.report("a.b", 1, {"loss": 1.0})
    writer.report("training", 3000, {"loss": 1.0, "note": "text"})
    key, port = Ed25519PrivateKey.generate(), free_port()

    async def part(*, loyal: bool) -> None:
        async with serving([BLUEPRINT], tmp_path, key=key, port=port) as running:
            token = running.trial_token(RUN)
            channel = open_channel(running.address, token=lambda: token)
            identity = RunIdentity(trial_id=RUN.trial_id, run=2, experiment_id=RUN.experiment_id)
            delivery = ReportDelivery.over(channel, identity) if loyal else Forgetful.over(channel, identity)
            sender = SpoolSender(spool, delivery)
            sender._batch = 16 << 10
            await asyncio.to_thread(sender.pump)
            while loyal and await asyncio.to_thread(sender.pump):
                pass
            assert sender.drained() == loyal
            sender.close()
            channel.close()
            if loyal:
                callers = Callers(running)
                person = callers.user()
                request = api.GetSeriesRequest(trial_id=RUN.trial_id, group="training", name="loss")
                series = await person.GetSeries(request)
                assert list(series.steps) == list(range(3001))
                assert list(series.values) == [*(step / 2 for step in range(3000)), 1.0]
                await callers.close()

    asyncio.run(part(loyal=False))
    asyncio.run(part(loyal=True))
    (refusal,) = refusals_of(spool)
    assert "group 'a.b' is not allowed" in refusal
    writer.close()
