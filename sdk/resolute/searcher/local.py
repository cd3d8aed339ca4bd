"""Drives a search from any machine, with its state in a directory there."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from resolute.client import Client
from resolute.client.connection.session import Session
from resolute.client.services import Services
from resolute.searcher.method import SearchMethod
from resolute.searcher.operations import Operation
from resolute.searcher.runner import SearchRunner
from resolute.searcher.search_client import ClusterSearchClient

_EXPERIMENT = "experiment_id.txt"
_OPERATIONS = "ops"
_LAST_EVENT = "event_id"


class LocalSearchRunner(SearchRunner):
    """Runs a search method in this process. A runner that is started again with the same directory continues.

    Args:
        search_method: The search method.
        searcher_dir: Directory for the state; None for the current directory.
        master: Address of the cluster; empty for that of the command line.

    Examples:
        ``runner.run("custom.yaml", "code")`` submits an experiment and drives it to its end. Before an
        answer is posted it is saved, so that a runner with the same directory continues:

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
        >>> runner = searcher.LocalSearchRunner(OneTrial(), "search")
        >>> runner.save_state(1, [searcher.Progress(0.5)])
        >>> continued = searcher.LocalSearchRunner(OneTrial(), "search")
        >>> continued.load_state(1)[0].progress
        0.5
    """

    def __init__(
        self,
        search_method: SearchMethod,
        searcher_dir: str | os.PathLike[str] | None = None,
        *,
        master: str = "",
    ) -> None:
        super().__init__(search_method)
        self.searcher_dir = Path(searcher_dir) if searcher_dir is not None else Path.cwd()
        self._master = master

    def run(
        self,
        exp_config: Mapping[str, Any] | str,
        model_dir: str | os.PathLike[str] | None = None,
        includes: Sequence[str | os.PathLike[str]] | None = None,
    ) -> int:
        """Submits the experiment, unless that was done before, and drives its search to the end.

        Args:
            exp_config: The config, or the path of its file; its searcher is ``custom``.
            model_dir: Directory of code.
            includes: What comes beside it.

        Returns:
            The experiment's number.
        """
        self.searcher_dir.mkdir(parents=True, exist_ok=True)
        noted = self.searcher_dir / _EXPERIMENT
        prior = None
        if noted.exists():
            experiment_id = int(noted.read_text())
            prior = self.load_state(experiment_id)
        else:
            with Client(self._master or None) as client:
                experiment_id = client.create_experiment(exp_config, model_dir, includes).id
            noted.write_text(str(experiment_id))
        with Session.find(self._master) as session:
            services = Services(session)
            uuid = services.experiments.get(str(experiment_id)).uuid
            self.drive(ClusterSearchClient(services, uuid), experiment_id=experiment_id, prior=prior)
        return experiment_id

    def save_state(self, experiment_id: int, operations: list[Operation]) -> None:
        """Saves the method, the state, and the answer that is about to be posted."""
        folder = self.searcher_dir / f"exp_{experiment_id}"
        event = self.state.last_event_id
        saved = folder / f"event_{event}"
        saved.mkdir(parents=True, exist_ok=True)
        self.search_method.save(self.state, saved, experiment_id=experiment_id)
        (saved / _OPERATIONS).write_bytes(pickle.dumps(operations))
        # What the last event is, is written last and at once: until then the one before counts.
        fresh = folder / f"{_LAST_EVENT}.new"
        fresh.write_text(str(event))
        fresh.replace(folder / _LAST_EVENT)
        for older in folder.glob("event_*"):
            if older.is_dir() and older != saved:
                shutil.rmtree(older, ignore_errors=True)

    def load_state(self, experiment_id: int) -> list[Operation] | None:
        """Loads what `save_state` saved, and gives the answer; None when nothing was saved."""
        folder = self.searcher_dir / f"exp_{experiment_id}"
        if not (folder / _LAST_EVENT).exists():
            return None
        saved = folder / f"event_{(folder / _LAST_EVENT).read_text()}"
        self.state, _ = self.search_method.load(saved)
        operations: list[Operation] = pickle.loads((saved / _OPERATIONS).read_bytes())  # noqa: S301 - our own
        return operations
