"""An experiment and its trials as scripts use them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from resolute.client.downloads.model_definition import save_model_definition
from resolute.client.objects.base import ArchivableObject
from resolute.client.objects.checkpoint import Checkpoint
from resolute.client.objects.checkpoint_ranking import ranked, with_validations
from resolute.client.objects.trial_base import TrialBase
from resolute.client.schema.ordering import (
    TRIAL_FIELDS,
    CheckpointSortBy,
    OrderBy,
    TrialSortBy,
    check_sorting,
    order_of,
)
from resolute.client.schema.records import ExperimentRecord, TrialRecord
from resolute.client.schema.states import ExperimentState
from resolute.client.submission.config import config_text
from resolute.errors import NotFoundError


class Trial(TrialBase):
    """One set of hyperparameters being trained.

    Examples:
        >>> from resolute import client
        >>> trial = client.get_trial(1)
        >>> trial.experiment_id
        2
        >>> [line.strip() for line in trial.iter_logs(tail=1)]
        ['hello']
    """

    def get_experiment(self) -> Experiment:
        """Returns its experiment."""
        return Experiment(self._services, self._services.experiments.get(self._record.experiment_uuid))

    def continue_(self, config: Mapping[str, Any] | None = None) -> Experiment:
        """Creates an experiment whose one trial starts from the weights of this one; its steps begin at zero.

        Args:
            config: Fields of its experiment's config to change; None for none.

        Raises:
            FailedPreconditionError: It has no checkpoint.
            InvalidConfigError: The config is wrong; every fault is listed.
        """
        text = config_text(config) if config else ""
        created = self._services.continuations.trial(self.uuid, config=text).experiment
        assert created is not None
        return Experiment(self._services, created)


class Experiment(ArchivableObject[ExperimentRecord]):
    """A config with a model definition; it owns trials. Lists hide archived ones.

    Examples:
        >>> from resolute import client
        >>> experiment = client.get_experiment(2)
        >>> [trial.id for trial in experiment.list_trials()]
        [1]
    """

    def __repr__(self) -> str:
        return f"Experiment(id={self.id}, name={self.name!r}, state={self.state.name})"

    @property
    def id(self) -> int:
        """Its number."""
        return self._record.id

    @property
    def uuid(self) -> str:
        """Its UUID."""
        return self._record.uuid

    @property
    def name(self) -> str:
        """Its name."""
        return self._record.name

    @property
    def description(self) -> str:
        """Its description."""
        return self._record.description

    @property
    def labels(self) -> set[str]:
        """Its labels."""
        return set(self._record.labels)

    @property
    def owner(self) -> str:
        """Who submitted it."""
        return self._record.owner

    @property
    def workspace(self) -> str:
        """Name of the workspace that it belongs to."""
        return self._record.workspace

    @property
    def project(self) -> str:
        """Name of the project that it belongs to."""
        return self._record.project

    @property
    def workspace_id(self) -> int:
        """Number of that workspace."""
        return self._record.workspace_id

    @property
    def project_id(self) -> int:
        """Number of that project."""
        return self._record.project_id

    @property
    def notes(self) -> str:
        """What people noted of it, Markdown; of one from a list as of the next ``reload``."""
        return self._record.notes

    @property
    def progress(self) -> float:
        """Done share in [0, 1]."""
        return self._record.progress

    @property
    def state(self) -> ExperimentState:
        """Its state; for an active one what it is doing, such as ``RUNNING``."""
        return ExperimentState.__members__.get(self._record.shown_state, self._record.state)

    @property
    def config(self) -> dict[str, Any]:
        """The whole config, defaults filled in."""
        if self._record.config is None:
            self.reload()
        return dict(self._record.config or {})

    def _read(self) -> ExperimentRecord:
        return self._services.experiments.get(self.uuid)

    def _set_archived(self, archived: bool) -> ExperimentRecord:
        return self._services.experiments.archive(self.uuid, archived=archived)

    def set_name(self, name: str) -> None:
        """Changes its name."""
        self._record = self._services.experiments.update(self.uuid, name=name)

    def set_description(self, description: str) -> None:
        """Changes its description."""
        self._record = self._services.experiments.update(self.uuid, description=description)

    def set_notes(self, notes: str) -> None:
        """Replaces its notes."""
        self._record = self._services.experiments.update(self.uuid, notes=notes)

    def set_labels(self, labels: Iterable[str]) -> None:
        """Puts labels in the place of those that were there."""
        self._record = self._services.experiments.update(self.uuid, labels=sorted(set(labels)))

    def add_label(self, label: str) -> None:
        """Adds a label to those that it has now."""
        self.reload()
        self.set_labels({*self.labels, label})

    def remove_label(self, label: str) -> None:
        """Removes a label from those that it has now; one that it has not is ignored."""
        self.reload()
        self.set_labels(self.labels - {label})

    def activate(self) -> None:
        """Lets it continue after a pause."""
        self._record = self._services.experiments.activate(self.uuid)

    def pause(self) -> None:
        """Asks its trials to checkpoint and exit, and starts none."""
        self._record = self._services.experiments.pause(self.uuid)

    def cancel(self) -> None:
        """Ends it after its trials had the chance to checkpoint."""
        self._record = self._services.experiments.cancel(self.uuid)

    def kill(self) -> None:
        """Ends it at once."""
        self._record = self._services.experiments.kill(self.uuid)

    def continue_(self, config: Mapping[str, Any] | None = None) -> None:
        """Lets it continue as itself, after its end too.

        After a failure or a cancellation, trials that did not complete are tried again from their
        checkpoints. The decisions of the search stay.

        Args:
            config: Fields of the config to change, such as a greater ``searcher.max_trials``; None for none.

        Raises:
            FailedPreconditionError: It has nothing to continue with, or is not where it could.
            InvalidConfigError: A field cannot change in an experiment that continues.
        """
        self._services.continuations.experiment(self.uuid, config=config_text(config) if config else "")
        self.reload()

    def fork(self, config: Mapping[str, Any] | None = None) -> Experiment:
        """Creates an experiment from its config and its code, without weights.

        Args:
            config: Fields of the config to change; None for none.

        Raises:
            InvalidConfigError: The config is wrong; every fault is listed.
        """
        text = config_text(config) if config else ""
        created = self._services.continuations.fork(self.uuid, config=text).experiment
        assert created is not None
        return Experiment(self._services, created)

    def delete(self) -> None:
        """Removes it with all it has."""
        self._record = self._services.experiments.delete(self.uuid)

    def delete_tensorboard_files(self) -> None:
        """Removes its TensorBoard files and nothing else; it must have ended."""
        self._services.experiments.delete_tensorboard_files(self.uuid)

    def get_pachyderm_config(self) -> Any:
        """Returns ``integrations.pachyderm`` of its config.

        Raises:
            ValueError: The config has none.
        """
        section = (self.config.get("integrations") or {}).get("pachyderm")
        if section is None:
            raise ValueError(f"the config of experiment {self.id} has no integrations.pachyderm")
        return section

    def move_to_project(self, workspace_name: str, project_name: str) -> None:
        """Moves it to another project; to another workspace only when it has ended."""
        self._services.workspaces.move(self.uuid, workspace=workspace_name, project=project_name)
        self.reload()

    def download_code(self, output_dir: str | None = None) -> str:
        """Fetches its model definition as a gzipped tar archive.

        Args:
            output_dir: Directory to write to; None for the current one.

        Returns:
            Path of the archive.
        """
        path = Path(output_dir or ".").expanduser() / f"exp-{self.id}_model_def.tar.gz"
        return str(save_model_definition(self._services.experiments, self.uuid, path))

    def iter_trials(
        self,
        sort_by: TrialSortBy = TrialSortBy.ID,
        order_by: OrderBy = OrderBy.ASCENDING,
        limit: int | None = None,
    ) -> Iterator[Trial]:
        """Yields its trials.

        Args:
            sort_by: What they are sorted by; trials without a value come last.
            order_by: Direction.
            limit: Only this many; None for all.
        """
        if (field := TRIAL_FIELDS.get(sort_by)) is not None:
            order = order_of(field, order_by)
            records = self._services.trials.list(self.uuid, order_by=order, limit=limit)
        else:
            key = _duration if sort_by is TrialSortBy.DURATION else self._sizes()
            ordered = sorted(
                self._services.trials.list(self.uuid), key=key, reverse=order_by is OrderBy.DESCENDING
            )
            records = iter(ordered[:limit])
        for record in records:
            yield Trial(self._services, record)

    def _sizes(self) -> Callable[[TrialRecord], int]:
        """Returns a function that tells the bytes of the checkpoints of a trial."""
        sizes: Counter[str] = Counter()
        for record in self._services.checkpoints.of_experiment(self.uuid):
            sizes[record.trial_uuid] += record.total_size
        return lambda trial: sizes[trial.uuid]

    def list_trials(
        self, sort_by: TrialSortBy = TrialSortBy.ID, order_by: OrderBy = OrderBy.ASCENDING
    ) -> list[Trial]:
        """Lists its trials."""
        return list(self.iter_trials(sort_by, order_by))

    get_trials = list_trials

    def await_first_trial(self, interval: float = 0.1) -> Trial:
        """Waits until it has a trial.

        Args:
            interval: Kept for older scripts: the service tells of the trial at once.

        Raises:
            NotFoundError: It ended without one.
        """
        watch = self._services.experiments.watch(self.uuid, include_trials=True)
        try:
            for change in watch:
                if change.trials:
                    return Trial(self._services, min(change.trials, key=lambda trial: trial.id))
        finally:
            watch.cancel()
        raise NotFoundError(f"experiment {self.id} ended without a trial")

    def wait(self, interval: float = 5.0) -> ExperimentState:
        """Waits until it ends.

        Args:
            interval: Kept for older scripts: the service tells of the end at once.

        Returns:
            The state that it ended in.

        Raises:
            ValueError: It is paused, so that it would not end.
        """
        watch = self._services.experiments.watch(self.uuid)
        try:
            for change in watch:
                if change.experiment is None:
                    continue
                self._record = change.experiment
                if self._record.state is ExperimentState.PAUSED:
                    raise ValueError(
                        f"experiment {self.id} is paused; activate it before waiting for its end"
                    )
        finally:
            watch.cancel()
        return self._record.state

    def list_checkpoints(
        self,
        sort_by: CheckpointSortBy | str | None = None,
        order_by: OrderBy | None = None,
        max_results: int | None = None,
    ) -> list[Checkpoint]:
        """Lists the checkpoints of its trials.

        Args:
            sort_by: An attribute, or the name of a validation metric; None for the best first by the
                experiment's own metric.
            order_by: Direction; goes together with ``sort_by``.
            max_results: Only this many; None for all.

        Raises:
            AssertionError: Only one of ``sort_by`` and ``order_by`` is given.
        """
        check_sorting(sort_by, order_by)
        records = with_validations(
            self._services.checkpoints.of_experiment(self.uuid),
            self._services.trials.list(self.uuid),
            metrics=self._services.metrics,
        )
        sorted_items = ranked(records, self._record, sort_by=sort_by, order_by=order_by)[:max_results]
        return [Checkpoint(self._services, item.checkpoint, validation=item) for item in sorted_items]

    def top_checkpoint(self, sort_by: str | None = None, smaller_is_better: bool | None = None) -> Checkpoint:
        """Returns its best checkpoint.

        Args:
            sort_by: The validation metric that decides; None for its own.
            smaller_is_better: With ``sort_by``: whether smaller values are better.

        Raises:
            NotFoundError: It has none.
        """
        checkpoints = self.top_n_checkpoints(1, sort_by, smaller_is_better)
        if not checkpoints:
            raise NotFoundError(f"experiment {self.id} has no checkpoint")
        return checkpoints[0]

    def top_n_checkpoints(
        self, limit: int, sort_by: str | None = None, smaller_is_better: bool | None = None
    ) -> list[Checkpoint]:
        """Lists its best checkpoints, the best first.

        Args:
            limit: Only this many.
            sort_by: The validation metric that decides; None for its own.
            smaller_is_better: With ``sort_by``: whether smaller values are better.

        Raises:
            AssertionError: Only one of ``sort_by`` and ``smaller_is_better`` is given.
        """
        if (sort_by is None) != (smaller_is_better is None):
            raise AssertionError("sort_by and smaller_is_better must be given together")
        if sort_by is None:
            return self.list_checkpoints(max_results=limit)
        order_by = OrderBy.ASCENDING if smaller_is_better else OrderBy.DESCENDING
        return self.list_checkpoints(sort_by, order_by, limit)


def _duration(trial: TrialRecord) -> float:
    end = trial.end_time or datetime.now(timezone.utc)
    return (end - (trial.create_time or end)).total_seconds()
