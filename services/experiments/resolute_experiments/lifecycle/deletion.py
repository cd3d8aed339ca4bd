"""Removes a deleted experiment from every service. Data that could be recreated is removed last."""

from __future__ import annotations

import structlog
from sqlalchemy.engine import Connection

from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as checkpoints_pb2
from resolute.api.logs.v1 import logs_service_pb2
from resolute.api.metrics.v1 import metrics_service_pb2
from resolute.api.searcher.v1 import searcher_service_pb2
from resolute.errors import NotFoundError, ResoluteError
from resolute_experiments.clients import Clients
from resolute_experiments.retention.tensorboard_files import delete_tensorboard_files
from resolute_experiments.states import ExperimentEvent
from resolute_experiments.store import experiments
from resolute_experiments.store.experiments import Experiment
from resolute_experiments.timing import Timing
from resolute_experiments.transitions import transition_experiment
from resolute_serving.database.engine import Database

_log = structlog.get_logger("removal")


async def delete_everywhere(
    experiment: Experiment, timing: Timing, *, database: Database, clients: Clients
) -> None:
    """Removes files, metrics, logs and the search, then what this service holds; leaves a tombstone.

    A failure leaves the experiment in DELETE_FAILED, from where it can be deleted again.
    """
    key = experiment.id

    async def conclude(event: ExperimentEvent, failure: str) -> None:
        def work(connection: Connection) -> None:
            current = experiments.get(connection, experiment_id=key)
            transition_experiment(connection, current, event, timing, failure=failure)

        await database.write(work)

    try:
        await clients.checkpoints.DeleteExperimentCheckpoints(
            checkpoints_pb2.DeleteExperimentCheckpointsRequest(experiment_id=key), timeout=300
        )
        await _delete_tensorboard_files(experiment, database, clients)
        await clients.metrics.DeleteExperimentMetrics(
            metrics_service_pb2.DeleteExperimentMetricsRequest(experiment_id=key), timeout=60
        )
        await clients.logs.DeleteExperimentLogs(
            logs_service_pb2.DeleteExperimentLogsRequest(experiment_id=key), timeout=60
        )
        try:
            await clients.searcher.DeleteSearch(searcher_service_pb2.DeleteSearchRequest(search_id=key))
        except NotFoundError:
            _log.info("the experiment had no search", experiment=experiment.number)
    except ResoluteError as error:
        _log.warning("deletion failed", experiment=experiment.number, error=str(error))
        await conclude(ExperimentEvent.DELETION_FAILED, str(error))
        return
    await conclude(ExperimentEvent.FILES_DELETED, "")


async def _delete_tensorboard_files(experiment: Experiment, database: Database, clients: Clients) -> None:
    """Removes TensorBoard files, as far as it can: they only show what is removed anyhow.

    Trials write them into directories only, so that no object store has to answer.
    """
    if (experiment.config.get("checkpoint_storage") or {}).get("type") not in {"directory", "shared_fs"}:
        return
    try:
        await delete_tensorboard_files(experiment, database=database, clients=clients)
    except ResoluteError as error:
        _log.warning("TensorBoard files stay", experiment=experiment.number, error=str(error))
