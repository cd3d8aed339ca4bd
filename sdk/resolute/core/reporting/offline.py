"""Records a trial off cluster in a directory, for ``resolute sync``."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.core.distributed import DistributedContext
from resolute.core.reporting.reporter import Reporter
from resolute.core.reporting.trial_record import LocalTrialRecord, TrialRecord
from resolute.runtime.offline_run import OfflineRun, directory_of
from resolute.spool.omissions import Omissions
from resolute.spool.report_writer import ReportWriter

if TYPE_CHECKING:
    from typing_extensions import Self

OFFLINE_DIRECTORY = "RESOLUTE_OFFLINE_DIR"
"""Environment variable that names the directory to record in."""
_NO_LIMIT = sys.maxsize
"""There are no acknowledgements while a run is recorded: only the disk bounds it."""


@dataclass(frozen=True)
class Recorder:
    """Records the reports and the metadata of one process."""

    reporter: Reporter
    record: TrialRecord


def record_offline(parent: Path, distributed: DistributedContext, omissions: Omissions) -> Recorder:
    """Begins to record; every process of the trial must call it.

    Args:
        parent: Directory that gets a directory for this run; all processes must see the same one.
        distributed: The processes of the trial.
        omissions: Receives what cannot be recorded.
    """
    run_id = distributed.broadcast(str(uuid.uuid4()) if distributed.rank == 0 else None)
    directory = directory_of(parent.expanduser().absolute(), run_id)
    record: TrialRecord = LocalTrialRecord()
    if distributed.rank == 0:
        name = Path(sys.argv[0]).name or "offline"
        run = OfflineRun.create(directory.parent, run_id=run_id, name=name, now=SYSTEM_CLOCK.time())
        record = OfflineTrialRecord(run)
    return Recorder(FileReporter.of_rank(directory, distributed.rank, omissions), record)


class FileReporter(ReportWriter):
    """Writes a spool that `resolute sync` reads later."""

    @classmethod
    def of_rank(cls, directory: Path, rank: int, omissions: Omissions | None = None) -> Self:
        """Makes the reporter of one process.

        Args:
            directory: The run's directory.
            rank: Rank of the process.
            omissions: Receives what cannot be recorded; it is counted and logged by default.
        """
        spool = directory / "spool"
        spool.mkdir(parents=True, exist_ok=True)
        return cls(spool, name=f"rank{rank}", limit=_NO_LIMIT, omissions=omissions)

    def flush(self, timeout: float | None = None) -> None:
        """Does nothing: reports are in their file once ``report`` returns."""

    def confirm(self) -> None:
        """Does nothing: no service refuses reports while a run is recorded."""


class OfflineTrialRecord(LocalTrialRecord):
    """A trial off cluster whose metadata is kept.

    Args:
        run: The directory of the recorded run.
    """

    def __init__(self, run: OfflineRun) -> None:
        super().__init__()
        self._run = run

    def set_metadata(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Replaces the metadata."""
        kept = super().set_metadata(metadata)
        self._run = self._run.with_metadata(kept)
        return kept
