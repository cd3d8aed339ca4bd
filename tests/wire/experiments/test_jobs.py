"""The queue: in the order in which the scheduler serves it, and changed by people."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.clusters.all_services import AllServices, all_services

from resolute import errors
from resolute.api.experiments.v1 import jobs_service_pb2 as pb2
from resolute.api.experiments.v1 import jobs_service_pb2_grpc
from resolute.api.experiments.v1.experiments_service_pb2 import ExperimentKey, KillExperimentRequest


def jobs(service: AllServices) -> Any:
    return jobs_service_pb2_grpc.JobsServiceStub(service.channel)


async def order(service: AllServices) -> list[int]:
    response = await jobs(service).ListJobs(pb2.ListJobsRequest())
    return [job.experiment_number for job in response.jobs]


async def three(service: AllServices) -> None:
    """Three experiments, which are paused so that none gets a slot."""
    for priority in (50, 40, 50):
        await service.create(paused=True, resources={"priority": priority, "max_slots": 1})


@pytest.mark.timeout(60)
def test_urgent_comes_first_and_the_order_can_be_changed(tmp_path: Path) -> None:
    async def body() -> None:
        async with all_services(tmp_path) as service:
            await three(service)
            assert await order(service) == [2, 1, 3]
            request = pb2.UpdateJobRequest(
                experiment=ExperimentKey(number=3), priority=1, weight=2.5, max_slots=0
            )
            job = (await jobs(service).UpdateJob(request)).job
            assert (job.priority, job.weight, job.HasField("max_slots")) == (1, 2.5, False)
            assert await order(service) == [3, 2, 1]
            config = (await service.get(3)).config
            resources = config.map_value.fields["resources"].map_value.fields
            assert resources["priority"].int_value == 1

    asyncio.run(body())


@pytest.mark.timeout(60)
def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    async def body() -> None:
        async with all_services(tmp_path) as service:
            await three(service)
            first = ExperimentKey(number=1)
            for change in ({"priority": 0}, {"priority": 100}, {"weight": 0.0}, {"weight": float("inf")}, {}):
                with pytest.raises(errors.InvalidArgumentError):
                    await jobs(service).UpdateJob(pb2.UpdateJobRequest(experiment=first, **change))
            await service.experiments.KillExperiment(KillExperimentRequest(experiment=first))
            async for _ in service.watch(1):
                pass
            assert await order(service) == [2, 3]
            with pytest.raises(errors.IllegalTransitionError, match="experiment 1 is CANCELED"):
                await jobs(service).UpdateJob(pb2.UpdateJobRequest(experiment=first, priority=7))

    asyncio.run(body())
