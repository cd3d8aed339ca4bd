"""The queue: in the order in which the scheduler serves it, and changed by people."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from support.clusters.all_services import AllServices, all_services

from resolute import errors
from resolute.api.experiments.v1 import experiment_pb2, job_pb2, jobs_service_pb2_grpc
from resolute.api.experiments.v1 import jobs_service_pb2 as pb2
from resolute.api.experiments.v1.experiment_pb2 import ExperimentKey
from resolute.api.experiments.v1.experiments_service_pb2 import KillExperimentRequest


def jobs(service: AllServices) -> Any:
    return jobs_service_pb2_grpc.JobsServiceStub(service.channel)


def update(number: int, *, etag: str = "", **values: Any) -> pb2.UpdateJobRequest:
    return pb2.UpdateJobRequest(
        experiment=ExperimentKey(number=number),
        job=job_pb2.Job(**values),
        update_mask=FieldMask(paths=list(values)),
        etag=etag,
    )


async def order(service: AllServices) -> list[int]:
    response = await jobs(service).ListJobs(pb2.ListJobsRequest())
    return [job.experiment_number for job in response.jobs]


@pytest.mark.timeout(60)
def test_a_job_says_what_it_is_for(tmp_path: Path) -> None:
    async def body() -> None:
        async with all_services(tmp_path) as service:
            await service.create(paused=True)
            searcher = {"name": "single", "metric": "loss", "max_length": {"batches": 1}}
            command = experiment_pb2.EXPERIMENT_KIND_COMMAND
            await service.create(paused=True, kind=command, searcher=searcher, max_restarts=0)
            listed = (await jobs(service).ListJobs(pb2.ListJobsRequest())).jobs
            kinds = {job.experiment_number: job.kind for job in listed}
            assert kinds == {
                1: experiment_pb2.EXPERIMENT_KIND_SEARCH,
                2: command,
            }

    asyncio.run(body())


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
            request = update(3, priority=1, weight=2.5, max_slots=None)
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
            wrong: tuple[dict[str, Any], ...] = (
                {"priority": 0},
                {"priority": 100},
                {"weight": 0.0},
                {"weight": float("inf")},
                {"max_slots": -1},
                {},
            )
            for change in wrong:
                with pytest.raises(errors.InvalidArgumentError):
                    await jobs(service).UpdateJob(update(1, **change))
            await service.experiments.KillExperiment(KillExperimentRequest(experiment=first))
            async for _ in service.watch(1):
                pass
            assert await order(service) == [2, 3]
            with pytest.raises(errors.IllegalTransitionError, match="experiment 1 is CANCELED"):
                await jobs(service).UpdateJob(update(1, priority=7))

    asyncio.run(body())


@pytest.mark.timeout(60)
def test_the_queue_is_paged_filtered_and_ordered(tmp_path: Path) -> None:
    async def body() -> None:
        async with all_services(tmp_path) as service:
            await three(service)

            async def listed(**wanted: Any) -> list[int]:
                response = await jobs(service).ListJobs(pb2.ListJobsRequest(**wanted))
                return [job.experiment_number for job in response.jobs]

            assert await listed(order_by="experiment_number desc") == [3, 2, 1]
            assert await listed(order_by="priority desc, experiment_number") == [1, 3, 2]
            assert await listed(states=[experiment_pb2.EXPERIMENT_STATE_ACTIVE]) == []
            assert await listed(workspace_ids=[12345]) == []
            first = await jobs(service).ListJobs(pb2.ListJobsRequest(page_size=2))
            assert [job.experiment_number for job in first.jobs] == [2, 1]
            assert await listed(page_size=2, page_token=first.next_page_token) == [3]
            with pytest.raises(errors.InvalidArgumentError, match="order_by"):
                await listed(order_by="owner")

    asyncio.run(body())


@pytest.mark.timeout(60)
def test_a_job_that_somebody_else_changed_is_not_changed_over_it(tmp_path: Path) -> None:
    async def body() -> None:
        async with all_services(tmp_path) as service:
            await three(service)
            before = (await jobs(service).ListJobs(pb2.ListJobsRequest())).jobs[0]
            number = before.experiment_number
            after = (await jobs(service).UpdateJob(update(number, etag=before.etag, weight=2.0))).job
            with pytest.raises(errors.ConflictError):
                await jobs(service).UpdateJob(update(number, etag=before.etag, weight=3.0))
            assert (
                await jobs(service).UpdateJob(update(number, etag=after.etag, weight=3.0))
            ).job.weight == 3.0

    asyncio.run(body())
