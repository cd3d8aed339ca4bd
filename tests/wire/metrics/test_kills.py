"""The service is killed at random instants while a spool is drained: each report arrives once."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest
from support.services.processes.killable import READER, ServiceProcess, some_run

from resolute.api.metrics.v1 import metrics_service_pb2 as api
from resolute.api.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
from resolute.spool.delivery.requests import RunIdentity
from resolute.spool.delivery.sender import SpoolSender
from resolute.spool.delivery.services import ReportDelivery
from resolute.spool.report_writer import ReportWriter

REPORTS = 20_000
KILLS = 4


@pytest.mark.integration
def test_kills_lose_no_report_and_double_none(tmp_path: Path) -> None:
    run = some_run()
    spool = tmp_path / "spool"
    spool.mkdir()
    writer = ReportWriter(spool)
    for step in range(REPORTS):
        group = "validation" if step % 10 == 0 else "training"
        writer.report(group, step, {"accuracy": step / REPORTS, "loss": -float(step)})
    writer.close()
    with ServiceProcess("metrics", tmp_path) as service:
        generator = random.Random(7)
        identity = RunIdentity(
            run.trial_id, 1, run.experiment_id, searcher_metric="accuracy", smaller_is_better=False
        )
        with service.channel(run) as channel:
            sender = SpoolSender(spool, ReportDelivery.over(channel, identity), jitter=lambda: 0.0)
            sender._batch = 16 << 10
            kills = 0
            while not sender.drained():
                killer = None
                if kills < KILLS and generator.random() < 0.2:
                    kills += 1
                    killer = threading.Timer(generator.random() * 0.02, service.kill)
                    killer.start()
                sender.pump()
                sender._retry_at = 0.0
                if killer is not None:
                    killer.join()
                    service.start()
            sender.close()
        assert kills == KILLS
        _check(service, run.trial_id, run.experiment_id)


def _check(service: ServiceProcess, trial_id: str, experiment_id: str) -> None:
    with service.channel(READER) as channel:
        stub = MetricsServiceStub(channel)
        for group, steps in (
            ("validation", list(range(0, REPORTS, 10))),
            ("training", [step for step in range(REPORTS) if step % 10]),
        ):
            request = api.GetSeriesRequest(trial_id=trial_id, group=group, name="loss")
            series = stub.GetSeries(request, timeout=10)
            assert list(series.steps) == steps
            assert list(series.values) == [-float(step) for step in steps]
        summaries = stub.ListSummaries(api.ListSummariesRequest(trial_ids=[trial_id]), timeout=10).summaries
        assert sum(one.count for one in summaries if one.name == "loss") == REPORTS
        assert sum(one.sum for one in summaries if one.name == "loss") == -sum(range(REPORTS))
        best = stub.GetBestValidation(api.GetBestValidationRequest(experiment_id=experiment_id), timeout=10)
        assert best.experiment_best.steps == REPORTS - 10
