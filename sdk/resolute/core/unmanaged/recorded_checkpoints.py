"""Checkpoints of a run that is recorded while no cluster is reachable, in the run's own directory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from resolute.contracts.files.atomic_files import read_json, write_json
from resolute.core.checkpoint.files.manifest import FileEntry
from resolute.core.checkpoint.files.record import RECORDS, Record
from resolute.core.checkpoint.registry import LocalRegistry, RegisteredCheckpoint
from resolute.core.checkpoint.stores.directory import DirectoryStore
from resolute.core.remote.registry import metadata_with_steps
from resolute.errors import DataLossError
from resolute.runtime.offline_run import OfflineRun
from resolute.trial_errors import CheckpointNotFound

_FOLDER = "checkpoints"
_log = logging.getLogger("resolute.core")


class RecordedCheckpoints:
    """The checkpoints in the directory of one run.

    Args:
        directory: The run's directory.
    """

    def __init__(self, directory: Path) -> None:
        self.base = directory / _FOLDER
        self._sent_file = directory / "checkpoints-sent.json"

    def finished(self) -> Iterator[tuple[str, Record]]:
        """Yields identifier and record of each checkpoint that counts, in the order of their steps."""
        records = []
        for path in (self.base / RECORDS).glob("*.json"):
            record = Record.read(path.read_bytes(), checkpoint_id=path.stem)
            if record.finished:
                records.append((path.stem, record))
        yield from sorted(records, key=lambda one: (one[1].metadata["steps_completed"], one[0]))

    def send(self, upload: Callable[[str, Path, Record], None]) -> None:
        """Sends what was not sent yet, and remembers what was.

        Args:
            upload: Sends one checkpoint: its identifier, the directory of its files and its record.
        """
        sent: list[str] = (read_json(self._sent_file) or {}).get("sent", [])
        for checkpoint_id, record in self.finished():
            if checkpoint_id not in sent:
                upload(checkpoint_id, self.base / checkpoint_id, record)
                sent.append(checkpoint_id)
                write_json(self._sent_file, {"sent": sent}, sync=True)


class RecordingRegistry:
    """Registers the checkpoints of a recorded run. It also looks up those of other recorded runs.

    Args:
        directory: The run's directory.
    """

    def __init__(self, directory: Path) -> None:
        self._parent = directory.parent
        self.store = DirectoryStore(RecordedCheckpoints(directory).base)
        self._own = LocalRegistry(self.store)

    def prepare(self, metadata: Mapping[str, Any] | None) -> dict[str, Any]:
        """Asks for what the cluster will ask for."""
        return metadata_with_steps(metadata)

    def begin(self, checkpoint_id: str) -> None:
        """Begins a checkpoint."""
        self._own.begin(checkpoint_id)

    def commit(self, checkpoint_id: str, *, files: Sequence[FileEntry], metadata: Mapping[str, Any]) -> None:
        """Makes a checkpoint count."""
        self._own.commit(checkpoint_id, files=files, metadata=metadata)

    def abort(self, checkpoint_id: str) -> None:
        """Gives up a checkpoint that was begun."""
        self._own.abort(checkpoint_id)

    def hold(self, checkpoint_id: str) -> None:
        """Here no policy deletes."""

    def find(self, checkpoint_id: str) -> RegisteredCheckpoint:
        """Returns a checkpoint of any run that was recorded here.

        Raises:
            CheckpointNotFound: None of them has it.
        """
        return self._registry_of(checkpoint_id).find(checkpoint_id)

    def metadata(self, checkpoint_id: str) -> dict[str, Any]:
        """Returns the metadata of a checkpoint of any run that was recorded here.

        Raises:
            CheckpointNotFound: None of them has it.
        """
        return self._registry_of(checkpoint_id).metadata(checkpoint_id)

    def delete(self, checkpoint_id: str) -> None:
        """Removes a checkpoint."""
        self._registry_of(checkpoint_id).delete(checkpoint_id)

    def _registry_of(self, checkpoint_id: str) -> LocalRegistry:
        if self.store.record(checkpoint_id) is not None:
            return self._own
        for directory in self._parent.glob(f"*/{_FOLDER}"):
            store = DirectoryStore(directory)
            if store.record(checkpoint_id) is not None:
                return LocalRegistry(store)
        raise CheckpointNotFound(
            f"there is no checkpoint {checkpoint_id} among the runs that are recorded in {self._parent}, "
            "and no cluster is in reach that may have it"
        )


def latest_of_trial(runs: Sequence[OfflineRun], run: OfflineRun) -> tuple[str, int] | None:
    """Finds the checkpoint with the most steps that earlier runs of a trial recorded.

    Args:
        runs: The recorded runs.
        run: The run that begins; its external ids name the trial.

    Returns:
        The checkpoint's identifier and its steps; None without one.
    """
    if run.trial is None:
        return None
    candidates: list[tuple[int, str]] = []
    for earlier in runs:
        if earlier.trial == run.trial:
            try:
                for checkpoint_id, record in RecordedCheckpoints(earlier.directory).finished():
                    candidates.append((int(record.metadata["steps_completed"]), checkpoint_id))
            except (OSError, DataLossError) as failure:
                _log.warning("the checkpoints in %s cannot be read: %s", earlier.directory, failure)
    if not candidates:
        return None
    steps, checkpoint_id = max(candidates)
    return checkpoint_id, steps
