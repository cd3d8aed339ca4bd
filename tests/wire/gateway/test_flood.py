"""Requests of pages do not keep a run from renewing its lease, though one process serves both."""

from __future__ import annotations

import asyncio
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from support.services.gateway import GatewayClient, gateway
from support.services.in_process import serving
from support.services.metrics import block

from resolute.api.experiments.v1 import allocations_service_pb2
from resolute.api.experiments.v1.allocations_service_pb2_grpc import AllocationsServiceStub
from resolute.api.metrics.v1 import metrics_service_pb2
from resolute.api.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
from resolute.errors import NotFoundError
from resolute_embedded.blueprints import BLUEPRINTS
from resolute_serving.context import Role, TrialRun

SERIES = "/resolute.api.metrics.v1.MetricsService/GetSeries"
LIST = "/resolute.api.experiments.v1.ExperimentsService/ListExperiments"
POINTS = 5000
PAGES = 12
RENEWALS = 20
LEASE_SECONDS = 30.0
"""How long a lease lasts where nothing else is configured."""


@pytest.mark.integration
def test_a_flood_of_page_requests_does_not_delay_a_renewal_past_half_of_a_lease(tmp_path: Path) -> None:
    experiment, trial, allocation = (str(uuid.uuid4()) for _ in range(3))
    run = TrialRun(trial, 1, experiment, allocation, "Uncategorized")
    steps = range(POINTS)
    reports = metrics_service_pb2.IngestReportsRequest(
        trial_id=trial,
        run=1,
        source="page",
        experiment_id=experiment,
        first_sequence=0,
        count=POINTS,
        blocks=[block("training", steps, steps, loss=[0.1] * POINTS)],
    )

    async def ask(http: GatewayClient, ended: asyncio.Event) -> int:
        answered = 0
        while not ended.is_set():
            charts = await http.json(SERIES, {"trialId": trial, "group": "training", "name": "loss"})
            listed = await http.json(LIST, {})
            assert (charts.status, listed.status) == (200, 200)
            assert len(charts.json()["steps"]) == POINTS
            answered += 2
        return answered

    async def scenario() -> None:
        async with serving(BLUEPRINTS, tmp_path) as running:
            supervisor = running.channel(running.trial_token(run))
            metrics: Any = MetricsServiceStub(supervisor)
            await metrics.IngestReports(reports)
            token = running.user_token(role=Role.ADMIN)
            async with gateway(running.address, token=token) as http:
                ended, taken = asyncio.Event(), []
                pages = [asyncio.create_task(ask(http, ended)) for _ in range(PAGES)]
                stub: Any = AllocationsServiceStub(supervisor)
                request = allocations_service_pb2.RenewLeaseRequest(allocation_id=allocation)
                for _ in range(RENEWALS):
                    began = time.monotonic()
                    # The call of an allocation that does not exist is authenticated, and reads the database.
                    with pytest.raises(NotFoundError):
                        await stub.RenewLease(request, timeout=60)
                    taken.append(time.monotonic() - began)
                ended.set()
                answered = sum(await asyncio.gather(*pages))
            await supervisor.close()
        print(f"{answered} answers to pages; the longest of {RENEWALS} renewals took {max(taken):.3f} s")
        assert answered >= PAGES * 2
        assert max(taken) < LEASE_SECONDS / 2

    asyncio.run(asyncio.wait_for(scenario(), 240))
