"""Where `resolute tensorboard start` looks for the event files of an experiment."""

from __future__ import annotations

from pathlib import Path

from resolute.api.experiments.v1 import experiment_pb2
from resolute.cli.task.tensorboard import _storages
from resolute.client.schema import convert
from resolute.contracts.values import to_value
from resolute.core.tensorboard.destinations import DirectoryDestination, open_destination

FILES = Path("c/tensorboard/experiment/1")


def test_event_files_are_looked_for_where_the_config_and_where_runs_in_containers_kept_them() -> None:
    section = {"type": "shared_fs", "host_path": "/srv", "storage_path": "checkpoints"}
    message = experiment_pb2.Experiment(
        config=to_value({"checkpoint_storage": section}),
        checkpoint_directories=["/srv/checkpoints/workspaces-c/1", "/srv/checkpoints/workspaces-c/2"],
        state=experiment_pb2.EXPERIMENT_STATE_COMPLETED,
        kind=experiment_pb2.EXPERIMENT_KIND_SEARCH,
    )
    for storage, place in zip(
        _storages(convert.experiment(message)),
        ("/srv/checkpoints", "/srv/checkpoints/workspaces-c/1", "/srv/checkpoints/workspaces-c/2"),
        strict=True,
    ):
        destination = open_destination(storage, FILES, container_path=None)
        assert isinstance(destination, DirectoryDestination)
        assert destination.path == Path(place) / FILES
