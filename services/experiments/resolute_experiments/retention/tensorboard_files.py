"""TensorBoard files of experiments, which trials write beside their checkpoints."""

from __future__ import annotations

from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as pb2
from resolute_experiments.clients import Clients
from resolute_experiments.specs.storage import moved, storage
from resolute_experiments.store import runs
from resolute_experiments.store.experiments import Experiment
from resolute_serving.database.engine import Database

_TIMEOUT = 300.0


async def delete_tensorboard_files(experiment: Experiment, *, database: Database, clients: Clients) -> None:
    """Removes the TensorBoard files of an experiment; does nothing for one without a storage.

    Args:
        experiment: The experiment.
        database: Knows where its runs kept their checkpoints.
        clients: The service that removes the files.

    Raises:
        ResoluteError: They cannot be removed now.
    """
    if not experiment.config.get("checkpoint_storage"):
        return
    directories = await database.read(lambda c: runs.checkpoint_directories(c, experiment.id))
    for directory in ("", *directories):
        await clients.checkpoints.DeleteExperimentTensorBoardFiles(
            pb2.DeleteExperimentTensorBoardFilesRequest(
                storage=storage(moved(experiment.config, directory)), experiment_number=experiment.number
            ),
            timeout=_TIMEOUT,
        )
