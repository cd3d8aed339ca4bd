"""A checkpoint as scripts use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from resolute.client.downloads.checkpoint_files import METADATA_FILE, download, write_metadata
from resolute.client.downloads.sources import DownloadMode
from resolute.client.objects.base import RemoteObject
from resolute.client.objects.checkpoint_ranking import ValidatedCheckpoint, with_validations
from resolute.client.objects.refused import NO_PACHYDERM, refusal
from resolute.client.schema.records import CheckpointRecord, TrialMetrics
from resolute.client.schema.states import CheckpointState
from resolute.client.services import Services


@dataclass(frozen=True, slots=True)
class CheckpointTraining:
    """The trial and the experiment that wrote a checkpoint.

    Examples:
        >>> from resolute import client
        >>> client.get_trial(1).top_checkpoint().training.validation_metrics
        {'loss': 0.5}
    """

    experiment_config: dict[str, Any]
    experiment_id: int
    trial_id: int
    hparams: dict[str, Any]
    validation_metrics: dict[str, Any]
    """Metrics that were reported at the checkpoint's steps, by dotted name."""


class Checkpoint(RemoteObject[CheckpointRecord]):
    """A directory of files with metadata, identified by a UUID.

    Args:
        services: The cluster.
        record: Its record on the cluster.
        validation: The validation at its steps, if it was already read.

    Examples:
        >>> from resolute import client
        >>> checkpoint = client.get_trial(1).top_checkpoint()
        >>> checkpoint.metadata
        {'steps_completed': 1}
        >>> checkpoint.resources
        {'weights': 7}
    """

    def __init__(
        self, services: Services, record: CheckpointRecord, *, validation: ValidatedCheckpoint | None = None
    ) -> None:
        super().__init__(services, record)
        self._validation = validation
        self._training: CheckpointTraining | None = None

    def __repr__(self) -> str:
        return f"Checkpoint(uuid={self.uuid!r}, state={self.state.name})"

    @property
    def uuid(self) -> str:
        """Its UUID."""
        return self._record.uuid

    @property
    def state(self) -> CheckpointState:
        """Its state when it was last read."""
        return self._record.state

    @property
    def metadata(self) -> dict[str, Any]:
        """Free metadata."""
        return dict(self._record.metadata)

    @property
    def resources(self) -> dict[str, int]:
        """Bytes of each file by path; directories end in "/"."""
        return {file.path: file.size for file in self._record.files}

    @property
    def report_time(self) -> datetime | None:
        """When it was committed."""
        return self._record.commit_time

    @property
    def task_id(self) -> str:
        """UUID of the trial that wrote it; empty when none did."""
        return self._record.trial_uuid

    @property
    def allocation_id(self) -> str:
        """The run that wrote it, as trial and number."""
        return f"{self._record.trial_uuid}.{self._record.run}" if self._record.trial_uuid else ""

    @property
    def training(self) -> CheckpointTraining | None:
        """What wrote it; None when no trial did."""
        if not self._record.trial_uuid:
            return None
        if self._training is None:
            self._training = self._read_training()
        return self._training

    def reload(self) -> None:
        """Reads it again."""
        super().reload()
        self._validation = self._training = None

    def _read(self) -> CheckpointRecord:
        return self._services.checkpoints.get(self.uuid)

    def download(self, path: str | None = None, mode: DownloadMode = DownloadMode.AUTO) -> str:
        """Fetches the files; those that are there already are compared and stay.

        Args:
            path: Directory to fetch into; None for ``checkpoints/<uuid>``.
            mode: Which way the bytes come.

        Returns:
            The directory.

        Raises:
            FailedPreconditionError: It is not committed, the directory holds another checkpoint, or ``mode``
                wants a store that cannot be reached.
            DataLossError: Fetched bytes do not match their digest.
        """
        destination = Path(path) if path is not None else Path("checkpoints") / self.uuid
        return str(download(self._record, destination, registry=self._services.checkpoints, mode=mode))

    def write_metadata_file(self, path: str) -> None:
        """Writes the metadata as JSON to a file, or as ``metadata.json`` into a directory."""
        target = Path(path)
        write_metadata(self._record, target / METADATA_FILE if target.is_dir() else target)

    def add_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Sets keys of the metadata."""
        self._record = self._services.checkpoints.update_metadata(self.uuid, metadata)

    def remove_metadata(self, keys: Sequence[str]) -> None:
        """Removes keys of the metadata."""
        self._record = self._services.checkpoints.update_metadata(self.uuid, dict.fromkeys(keys))

    def delete(self) -> None:
        """Removes it with its files."""
        self._services.checkpoints.delete([self.uuid])

    def remove_files(self, globs: Sequence[str]) -> None:
        """Removes the files that match one of ``globs``.

        Raises:
            ValueError: There is no glob; ``delete`` removes everything.
        """
        if not globs:
            raise ValueError("remove_files needs at least one glob; delete() removes the whole checkpoint")
        self._services.checkpoints.delete([self.uuid], globs=globs)
        self.reload()

    def get_metrics(self, group: str | None = None) -> list[TrialMetrics]:
        """Returns what its trial reported at its steps, in ``group`` or in all groups."""
        if not self._record.trial_uuid:
            return []
        trial = self._services.trials.get(self._record.trial_uuid)
        reports = self._services.metrics.reports(trial, group=group or "")
        return [report for report in reports if report.steps_completed == self._record.steps_completed]

    def get_pachyderm_commit(self) -> Any:
        """Refused: there is no integration with Pachyderm."""
        raise refusal("get_pachyderm_commit", NO_PACHYDERM)

    def _read_training(self) -> CheckpointTraining:
        trial = self._services.trials.get(self._record.trial_uuid)
        experiment = self._services.experiments.get(trial.experiment_uuid)
        validation = self._validation
        if validation is None:
            validation = with_validations([self._record], [trial], metrics=self._services.metrics)[0]
        return CheckpointTraining(
            experiment_config=experiment.config or {},
            experiment_id=experiment.id,
            trial_id=trial.id,
            hparams=trial.hparams,
            validation_metrics=dict(validation.metrics),
        )
