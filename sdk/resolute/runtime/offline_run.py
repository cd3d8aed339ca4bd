"""The directory of a run outside of a cluster.

``run.json`` describes the run, ``spool/`` holds its reports and lines, and ``exit.json`` records how it
ended. The script writes the directory. Its sidecar sends it while the script runs, or ``resolute sync`` sends
it later, any number of times.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from resolute.contracts.files.atomic_files import write_json
from resolute.contracts.spool.format import LOGS_SUFFIX, MEDIA_SUFFIX, METRICS_SUFFIX
from resolute.errors import DataLossError

_FILE = "run.json"
_VERSION = 1


@dataclass(frozen=True)
class OfflineRun:
    """The description of a run, without its reports."""

    directory: Path
    """Where it lies."""
    run_id: str
    """UUID that it got when it began."""
    name: str
    """What a cluster is to call its experiment."""
    started_at: float
    """Unix time."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Free metadata."""
    hparams: Mapping[str, Any] = field(default_factory=dict)
    """Hyperparameters."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the experiment's config."""
    external_experiment_id: str = ""
    """Names the experiment across runs; empty for one of its own."""
    external_trial_id: str = ""
    """Names the trial across runs; empty for one of its own."""

    @classmethod
    def create(cls, parent: Path, *, run_id: str, name: str, now: float, **known: Any) -> OfflineRun:
        """Creates the directory of a new run.

        Args:
            parent: Where runs lie; created if missing.
            run_id: UUID of the run.
            name: What a cluster is to call its experiment.
            now: Unix time.
            known: Further fields.
        """
        run = cls(directory_of(parent, run_id), run_id, name, now, **known)
        run.spool.mkdir(parents=True, exist_ok=True)
        run.save()
        return run

    @classmethod
    def load(cls, directory: Path) -> OfflineRun:
        """Reads a run.

        Raises:
            DataLossError: The directory holds none, or one of a newer release.
        """
        path = directory / _FILE
        try:
            content = json.loads(path.read_text())
            version = content.pop("version")
            if version != _VERSION:
                raise DataLossError(
                    f"{path} has version {version}; this release reads version {_VERSION}: use a newer one"
                )
            return cls(directory=directory, **{**content, "run_id": str(uuid.UUID(content["run_id"]))})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataLossError(f"{path} does not describe a recorded run: {error}") from error

    @property
    def trial(self) -> tuple[str, str] | None:
        """The external ids of a trial with several runs; None if the run is a trial by itself."""
        ids = self.external_experiment_id, self.external_trial_id
        return ids if all(ids) else None

    @property
    def spool(self) -> Path:
        """The directory of its reports."""
        return self.directory / "spool"

    @property
    def exit_file(self) -> Path:
        """The file of its ``ExitRecord``, which is written when it ends."""
        return self.directory / "exit.json"

    @property
    def lock_file(self) -> Path:
        """The lock that is held by a process that sends the run."""
        return self.directory / "lock"

    def exists(self) -> bool:
        """Returns whether the run's directory still exists."""
        return (self.directory / _FILE).exists()

    def with_metadata(self, metadata: Mapping[str, Any]) -> OfflineRun:
        """Saves the run with other metadata and returns it."""
        changed = replace(self, metadata=dict(metadata))
        changed.save()
        return changed

    def ended_at(self) -> float:
        """Returns the Unix time of its last record. Call it before the run is sent, which removes spools."""
        # The other files beside the spools are written by those who send them, later.
        spools = [
            path
            for path in self.spool.glob("*")
            if path.suffix in {METRICS_SUFFIX, LOGS_SUFFIX, MEDIA_SUFFIX}
        ]
        times = [path.stat().st_mtime for path in (self.directory / _FILE, *spools)]
        return max(self.started_at, *times)

    def save(self) -> None:
        """Writes the run's description atomically."""
        content = {**asdict(self), "version": _VERSION}
        del content["directory"]
        write_json(self.directory / _FILE, content, sync=True)

    def remove(self) -> None:
        """Removes the run, as far as the file system permits. Call it while holding the lock."""
        with contextlib.suppress(OSError):
            # First, so that the rest is not taken for a run.
            (self.directory / _FILE).unlink(missing_ok=True)
            shutil.rmtree(self.directory, ignore_errors=True)


def directory_of(parent: Path, run_id: str) -> Path:
    """Returns the directory of a run below the directory of records."""
    return parent / run_id


def find_runs(directory: Path, *, unreadable: Callable[[DataLossError], None]) -> list[OfflineRun]:
    """Returns the run in a directory, or the runs in its subdirectories, oldest first.

    Args:
        directory: A run, or where runs lie.
        unreadable: Called with each run that cannot be read.
    """
    places = [directory] if (directory / _FILE).exists() else [f.parent for f in directory.glob(f"*/{_FILE}")]
    return load_runs(places, unreadable=unreadable)


def load_runs(
    directories: Iterable[Path], *, unreadable: Callable[[DataLossError], None]
) -> list[OfflineRun]:
    """Reads runs; returns those that can be read, oldest first.

    Args:
        directories: The runs.
        unreadable: Called with each run that cannot be read.
    """
    runs = []
    for directory in directories:
        try:
            runs.append(OfflineRun.load(directory))
        except DataLossError as failure:
            unreadable(failure)
    return sorted(runs, key=lambda run: (run.started_at, run.run_id))
