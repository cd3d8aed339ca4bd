"""The queue of the cluster."""

from __future__ import annotations

from google.protobuf.field_mask_pb2 import FieldMask

from resolute.api.experiments.v1 import job_pb2, jobs_service_pb2_grpc
from resolute.api.experiments.v1 import jobs_service_pb2 as _pb
from resolute.client.connection.paging import all_items
from resolute.client.connection.session import Session
from resolute.client.schema import convert
from resolute.client.schema.records import JobRecord


class Jobs:
    """Calls of the jobs service.

    Args:
        session: The connection.
    """

    def __init__(self, session: Session) -> None:
        self._stub = session.stub(jobs_service_pb2_grpc.JobsServiceStub)

    def list(self) -> list[JobRecord]:
        """Returns experiments that have not ended, in the order in which they get slots."""
        return [
            convert.job(message) for message in all_items(self._stub.ListJobs, _pb.ListJobsRequest(), "jobs")
        ]

    def update(
        self,
        experiment: int | str,
        *,
        priority: int | None = None,
        weight: float | None = None,
        max_slots: int | None = None,
    ) -> JobRecord:
        """Changes the place of an experiment in the queue; what is None stays.

        Args:
            experiment: Its number or UUID.
            priority: Urgency from 1 (most) to 99.
            weight: Share among experiments of the same priority.
            max_slots: Most slots that it may hold; 0 for no limit.

        Raises:
            NotFoundError: There is no such experiment.
            FailedPreconditionError: It has ended.
            InvalidArgumentError: A value cannot be.
        """
        given = {"priority": priority, "weight": weight, "max_slots": max_slots}
        request = _pb.UpdateJobRequest(
            experiment=convert.experiment_key(experiment),
            # An absent limit is none.
            job=job_pb2.Job(priority=priority or 0, weight=weight or 0.0, max_slots=max_slots or None),
            update_mask=FieldMask(paths=[name for name, value in given.items() if value is not None]),
        )
        return convert.job(self._stub.UpdateJob(request).job)
