"""TensorBoard files of experiments: trials write them beside their checkpoints."""

from __future__ import annotations

from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as pb2
from resolute_experiments.clients import Clients
from resolute_experiments.specs.storage import storage
from resolute_experiments.store.experiments import Experiment

_TIMEOUT = 300.0


async def delete_tensorboard_files(experiment: Experiment, *, clients: Clients) -> None:
    """Removes the TensorBoard files of an experiment; does nothing for one without a storage.

    Raises:
        ResoluteError: They cannot be removed now.
    """
    if not experiment.config.get("checkpoint_storage"):
        return
    await clients.checkpoints.DeleteExperimentTensorBoardFiles(
        pb2.DeleteExperimentTensorBoardFilesRequest(
            storage=storage(experiment.config), experiment_number=experiment.number
        ),
        timeout=_TIMEOUT,
    )
