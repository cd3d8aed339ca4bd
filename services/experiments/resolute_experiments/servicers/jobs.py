"""Handlers of JobsService."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import experiment_pb2, jobs_service_pb2_grpc
from resolute.api.experiments.v1 import jobs_service_pb2 as pb2
from resolute_experiments.context import ServiceContext
from resolute_experiments.notifier import SCHEDULER_WAKEUP
from resolute_experiments.scheduling import jobs
from resolute_experiments.scheduling.jobs import Change, Job
from resolute_experiments.scheduling.wait_reasons import WaitReasons


class JobsServicer(jobs_service_pb2_grpc.JobsServiceServicer):
    """Shows the queue and changes its order.

    Args:
        core: What all handlers of this service share.
        wait_reasons: Knows why trials wait.
    """

    def __init__(self, core: ServiceContext, *, wait_reasons: WaitReasons) -> None:
        self._core = core
        self._wait_reasons = wait_reasons

    async def ListJobs(self, request: pb2.ListJobsRequest, context: Any) -> pb2.ListJobsResponse:
        """Lists live experiments, next first."""
        found = await self._core.database.read(jobs.ordered_jobs)
        return pb2.ListJobsResponse(jobs=[self._message(job) for job in found])

    async def UpdateJob(self, request: pb2.UpdateJobRequest, context: Any) -> pb2.UpdateJobResponse:
        """Changes priority, weight or limit of an experiment."""
        change = Change(
            priority=request.priority if request.HasField("priority") else None,
            weight=request.weight if request.HasField("weight") else None,
            max_slots=request.max_slots if request.HasField("max_slots") else None,
        )
        now = self._core.clock.time()

        def work(connection: Connection) -> Job:
            experiment = self._core.experiment(connection, request.experiment)
            return jobs.update(connection, experiment, change, now=now)

        job = await self._core.database.write(work)
        self._core.notifier.notify(SCHEDULER_WAKEUP, (job.experiment_id, "watch"))
        return pb2.UpdateJobResponse(job=self._message(job))

    def _message(self, job: Job) -> pb2.Job:
        waits = self._wait_reasons.first_wait_reason(job.experiment_id) if job.queued else ""
        return pb2.Job(
            experiment_id=job.experiment_id,
            experiment_number=job.number,
            name=job.name,
            owner=job.owner,
            state=experiment_pb2.ExperimentState.Value(f"EXPERIMENT_STATE_{job.state.value}"),
            priority=job.share.priority,
            weight=job.share.weight,
            max_slots=job.share.max_slots,
            slots_per_trial=job.slots_per_trial,
            held_slots=job.held_slots,
            queued_trials=job.queued,
            allocated_trials=job.allocated,
            explanation=waits,
        )
