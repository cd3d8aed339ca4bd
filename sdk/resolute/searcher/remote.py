"""Drives a search from within an experiment, with its state in that experiment's checkpoints."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from resolute import core
from resolute.client import Client
from resolute.client.connection.session import Session
from resolute.client.services import Services
from resolute.info import get_cluster_info
from resolute.searcher.method import SearchMethod
from resolute.searcher.operations import Operation
from resolute.searcher.runner import SearchRunner
from resolute.searcher.search_client import ClusterSearchClient

_OPERATIONS = "ops"


class RemoteSearchRunner(SearchRunner):
    """Runs a search method as the code of its own experiment, which can be paused and resumed.

    Args:
        search_method: The search method.
        context: The Core API of the experiment that runs the method.

    Examples:
        ``runner.run("custom.yaml", "code")``, in the entrypoint of an experiment, submits a second
        experiment and drives it. The method's state is saved in checkpoints of the first:

        >>> import uuid
        >>> from resolute import searcher
        >>> class OneTrial(searcher.SearchMethod):
        ...     def initial_operations(self, searcher_state):
        ...         trial = uuid.uuid4()
        ...         return [searcher.Create(trial, {"lr": 0.1}, None), searcher.ValidateAfter(trial, 10)]
        ...     def on_trial_created(self, searcher_state, request_id):
        ...         return []
        ...     def on_validation_completed(self, searcher_state, request_id, metric, train_length):
        ...         return [searcher.Close(request_id)]
        ...     def on_trial_closed(self, searcher_state, request_id):
        ...         return [searcher.Shutdown()]
        ...     def on_trial_exited_early(self, searcher_state, request_id, exited_reason):
        ...         return [searcher.Shutdown(failure=True)]
        ...     def progress(self, searcher_state):
        ...         return float(bool(searcher_state.trials_closed))
        >>> from resolute import core
        >>> with core.init() as context:
        ...     runner = searcher.RemoteSearchRunner(OneTrial(), context)
        ...     runner.state.last_event_id = 1
        ...     runner.save_state(2, [])
    """

    def __init__(self, search_method: SearchMethod, context: core.Context) -> None:
        super().__init__(search_method)
        self.context = context

    def run(
        self,
        exp_config: Mapping[str, Any] | str,
        model_dir: str | os.PathLike[str] | None = None,
        includes: Sequence[str | os.PathLike[str]] | None = None,
    ) -> int:
        """Submits the experiment that is searched, unless that was done before, and drives it to the end.

        Args:
            exp_config: The config, or the path of its file; its searcher is ``custom``.
            model_dir: Directory of code.
            includes: What comes beside it.

        Returns:
            The experiment's number.
        """
        info = get_cluster_info()
        latest = info.latest_checkpoint if info is not None else None
        prior: list[Operation] | None = None
        if latest is not None:
            with self.context.checkpoint.restore_path(latest) as path:
                self.state, experiment_id = self.search_method.load(path)
                prior = pickle.loads((Path(path) / _OPERATIONS).read_bytes())  # noqa: S301 - our own
        else:
            with Client() as client:
                experiment_id = client.create_experiment(exp_config, model_dir, includes).id
            # Before anything is posted, so that a restart finds the experiment.
            self.save_state(experiment_id, [])
        with Session.find() as session:
            services = Services(session)
            uuid = services.experiments.get(str(experiment_id)).uuid
            self.drive(ClusterSearchClient(services, uuid), experiment_id=experiment_id, prior=prior)
        return experiment_id

    def save_state(self, experiment_id: int, operations: list[Operation]) -> None:
        """Saves the method, the state, and the answer that is about to be posted, as a checkpoint."""
        metadata = {"steps_completed": self.state.last_event_id, "experiment_id": experiment_id}
        with self.context.checkpoint.store_path(metadata) as (path, _):
            self.search_method.save(self.state, path, experiment_id=experiment_id)
            (Path(path) / _OPERATIONS).write_bytes(pickle.dumps(operations))
