"""Handlers of JobsService."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import job_pb2, jobs_service_pb2_grpc
from resolute.api.experiments.v1 import jobs_service_pb2 as pb2
from resolute_experiments.admission.config_policies import Enforced
from resolute_experiments.context import ServiceContext
from resolute_experiments.scheduling import jobs
from resolute_experiments.scheduling.jobs import Change, Job
from resolute_experiments.scheduling.wait_reasons import WaitReasons
from resolute_experiments.servicers.checks.sizes import check_filter
from resolute_experiments.servicers.messages.experiments import experiment_state, job_message
from resolute_experiments.store import config_policies
from resolute_experiments.topics import SCHEDULER_WAKEUP, watched
from resolute_serving.auth.grants import current_grants
from resolute_serving.pagination import decode_token, encode_token, page_size, parse_order_by
from resolute_serving.updates import check_etag, update_paths
from resolute_serving.validation import invalid

_FIELDS = ("priority", "weight", "max_slots")
_ORDERS: Mapping[str, Callable[[tuple[int, Job]], Any]] = {
    "position": lambda entry: entry[0],
    "experiment_number": lambda entry: entry[1].number,
    "name": lambda entry: entry[1].name,
    "priority": lambda entry: entry[1].share.priority,
    "held_slots": lambda entry: entry[1].held_slots,
    "queued_trials": lambda entry: entry[1].queued,
}


class JobsServicer(jobs_service_pb2_grpc.JobsServiceServicer):
    """Shows the queue and changes its order.

    Args:
        core: The context that all handlers share.
        wait_reasons: The reasons why trials wait.
    """

    def __init__(self, core: ServiceContext, *, wait_reasons: WaitReasons) -> None:
        self._core = core
        self._wait_reasons = wait_reasons

    async def ListJobs(self, request: pb2.ListJobsRequest, context: Any) -> pb2.ListJobsResponse:
        """Lists live experiments."""
        limit = page_size(request.page_size)
        for field in ("owner_ids", "workspace_ids"):
            check_filter(request, field)
        states = {experiment_state(number) for number in request.states}
        # The order of the queue is no column: a page begins where the one before ended in the whole list.
        start = decode_token(request) or 0
        order = parse_order_by(request.order_by or "position", allowed=_ORDERS)
        grants = current_grants.get()
        entries = [
            (position, job)
            for position, job in enumerate(await self._core.database.read(jobs.ordered_jobs))
            if grants.sees(job.workspace_id)
            and (not states or job.state in states)
            and (not request.owner_ids or job.owner_id in request.owner_ids)
            and (not request.workspace_ids or job.workspace_id in request.workspace_ids)
        ]
        for by in reversed(order):
            entries.sort(key=_ORDERS[by.field], reverse=by.descending)
        page = entries[start : start + limit]
        more = len(entries) > start + limit
        return pb2.ListJobsResponse(
            jobs=[self._message(job) for _, job in page],
            next_page_token=encode_token(request, start + limit) if more else "",
        )

    async def UpdateJob(self, request: pb2.UpdateJobRequest, context: Any) -> pb2.UpdateJobResponse:
        """Changes priority, weight or limit of an experiment."""
        paths = update_paths(request.update_mask, allowed=_FIELDS)
        given = request.job
        if "max_slots" in paths and given.HasField("max_slots") and given.max_slots < 1:
            raise invalid(
                "job.max_slots", f"max_slots is {given.max_slots}; give 1 or more, or none for no limit"
            )
        change = Change(
            priority=given.priority if "priority" in paths else None,
            weight=given.weight if "weight" in paths else None,
            max_slots=given.max_slots if "max_slots" in paths else None,
        )
        now = self._core.clock.time()

        def work(connection: Connection) -> Job:
            experiment = self._core.experiment(connection, request.experiment)
            check_etag(request.etag, revision=experiment.edit_revision, resource=experiment.label)
            policies = config_policies.effective(connection, experiment.workspace)
            Enforced(policies).check_change(change.resources)
            return jobs.update(connection, experiment, change, now=now)

        job = await self._core.database.write(work)
        self._core.notifier.notify(SCHEDULER_WAKEUP, watched(job.experiment_id))
        return pb2.UpdateJobResponse(job=self._message(job))

    def _message(self, job: Job) -> job_pb2.Job:
        return job_message(job, self._wait_reasons)
