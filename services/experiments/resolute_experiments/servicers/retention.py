"""Handlers of RetentionService."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import retention_service_pb2 as pb2
from resolute.api.experiments.v1 import retention_service_pb2_grpc
from resolute.errors import FailedPreconditionError
from resolute_experiments.clients import Clients
from resolute_experiments.context import ServiceContext
from resolute_experiments.retention import garbage_collection
from resolute_experiments.retention.tensorboard_files import delete_tensorboard_files
from resolute_experiments.states import ENDED_EXPERIMENTS
from resolute_experiments.store import audit
from resolute_experiments.store.experiments import Experiment
from resolute_serving.validation import invalid


class RetentionServicer(retention_service_pb2_grpc.RetentionServiceServicer):
    """Deletes files of ended experiments.

    Args:
        core: The context that all handlers share.
        clients: The other services.
        unreported: Returns the allocations whose reports have not all arrived.
    """

    def __init__(
        self, core: ServiceContext, *, clients: Clients, unreported: garbage_collection.Unreported
    ) -> None:
        self._core = core
        self._clients = clients
        self._unreported = unreported

    async def CollectCheckpoints(
        self, request: pb2.CollectCheckpointsRequest, context: Any
    ) -> pb2.CollectCheckpointsResponse:
        """Deletes what a policy does not keep, or says what that is."""
        experiment = await self._core.database.read(lambda c: self._core.experiment(c, request.experiment))
        if experiment.state not in ENDED_EXPERIMENTS and not request.preview:
            raise FailedPreconditionError(
                f"{experiment.label} has not ended, its trials may still need their checkpoints; end it, or "
                "ask for a preview",
                resource=experiment.label,
            )
        for field, count in request.ListFields():
            if field.name in garbage_collection.POLICY and count < 0:
                raise invalid(field.name, f"{field.name} is {count}; it must be 0 or more")
        named = {
            field.name: count
            for field, count in request.ListFields()
            if field.name in garbage_collection.POLICY
        }
        deleted = await garbage_collection.collect(
            experiment,
            policy=named,
            late=await garbage_collection.trials_awaiting_reports(
                experiment, unreported=self._unreported, database=self._core.database
            ),
            preview=request.preview,
            database=self._core.database,
            clients=self._clients,
        )
        return pb2.CollectCheckpointsResponse(deleted_checkpoint_ids=deleted)

    async def DeleteTensorBoardFiles(
        self, request: pb2.DeleteTensorBoardFilesRequest, context: Any
    ) -> pb2.DeleteTensorBoardFilesResponse:
        """Removes the TensorBoard files of an experiment."""
        now = self._core.clock.time()

        def work(connection: Connection) -> Experiment:
            experiment = self._core.experiment(connection, request.experiment)
            if experiment.state not in ENDED_EXPERIMENTS:
                raise FailedPreconditionError(
                    f"{experiment.label} has not ended, its trials may still write TensorBoard files; "
                    "end it first",
                    resource=experiment.label,
                )
            # Before the act: files may be gone although the caller left, or the removal failed halfway.
            audit.record(connection, "delete_tensorboard_files", experiment.label, now=now)
            return experiment

        experiment = await self._core.database.write(work)
        await delete_tensorboard_files(experiment, database=self._core.database, clients=self._clients)
        return pb2.DeleteTensorBoardFilesResponse()
