"""What a metrics service must have after a fault: exactly the points that were reported."""

from __future__ import annotations

import time
from pathlib import Path

from faults.metrics.programs import value_at
from support.services.processes.killable import READER, ServiceProcess

from resolute.api.metrics.v1 import metrics_service_pb2 as api
from resolute.api.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
from resolute.rpc.channel import open_channel
from resolute.spool.delivery.requests import RunIdentity
from resolute.spool.delivery.sender import SpoolSender
from resolute.spool.delivery.services import ReportDelivery
from resolute_serving.context import TrialRun

_DEADLINE = 60.0


def drain(service: ServiceProcess, run: TrialRun, spool: Path) -> None:
    """Sends what is left, and looks that nothing stays."""
    token = service.token(run)
    with open_channel(service.address, token=lambda: token) as channel:
        identity = RunIdentity(run.trial_id, run.run, run.experiment_id)
        sender = SpoolSender(spool, ReportDelivery.over(channel, identity))
        deadline = time.monotonic() + _DEADLINE
        while not sender.drained():
            assert time.monotonic() < deadline, "the spools are not drained"
            sender.pump()
        sender.close()


def check(service: ServiceProcess, run: TrialRun, count: int) -> None:
    """Compares what the service has with the steps from 0 that were reported: each once, with its value."""
    with service.channel(READER) as channel:
        stub = MetricsServiceStub(channel)
        request = api.GetSeriesRequest(trial_id=run.trial_id, group="training", name="value")
        series = stub.GetSeries(request, timeout=10)
        assert list(series.steps) == list(range(count))
        assert list(series.values) == [value_at(step) for step in range(count)]
        summaries = stub.ListSummaries(
            api.ListSummariesRequest(trial_ids=[run.trial_id]), timeout=10
        ).summaries
        found = {one.name: (one.count, one.sum) for one in summaries}
        assert found["step"] == (count, float(sum(range(count))))
        assert found["value"][0] == count
