"""The record of a trial at the services."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from resolute.api.experiments.v1 import trials_service_pb2 as trials
from resolute.api.metrics.v1 import metrics_service_pb2 as metrics
from resolute.api.searcher.v1 import searcher_service_pb2 as searcher
from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.early_exit import EarlyExit
from resolute.contracts.run.shared_memory.movement import Movement
from resolute.contracts.unicode_text import valid_unicode
from resolute.contracts.values import to_mapping, to_value
from resolute.core.remote.session import Session
from resolute.core.reporting.early_exit import EarlyExitReason
from resolute.errors import ResoluteError, UnimplementedError

_STATUS_DEADLINE = 2.0
_STATUS_PAUSE = 30.0
_log = logging.getLogger("resolute.core")


class RemoteTrialRecord:
    """The record of a run's trial at the services.

    Args:
        session: The services.
        run_directory: Directory in which the supervisor reads the reason of an early exit.
        flush: Waits until this process's reports have arrived, so that answers about metrics include them.
        length: Total length of the trial, for its progress; 1 if the search has no lengths.
        movement: Memory in which the supervisor sees the script's progress.
        clock: Clock for the pause after a failed status.
    """

    def __init__(
        self,
        session: Session,
        *,
        run_directory: RunDirectory,
        flush: Callable[[], None],
        movement: Movement,
        length: int = 1,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._session = session
        self._movement = movement
        self._run_directory = run_directory
        self._flush = flush
        self._length = length
        self._clock = clock
        self._quiet_until = 0.0

    def set_status(self, status: str) -> None:
        """Shows a word or two to people; a failure is logged, and the next half minute is quiet."""
        self._session.check_process()
        self._movement.begin_phase()
        if self._clock.monotonic() < self._quiet_until:
            return
        shown = valid_unicode(str(status))
        request = trials.SetTrialStatusRequest(trial_id=self._trial_id, run=self._run, status=shown)
        try:
            self._session.trials.SetTrialStatus(request, timeout=_STATUS_DEADLINE)
        except ResoluteError as failure:
            self._quiet_until = self._clock.monotonic() + _STATUS_PAUSE
            _log.info("the status %r is not shown: %s", status, failure)

    def best_validation(self) -> float | None:
        """Best value of the searcher's metric in the whole experiment, this process's reports included."""
        self._flush()
        request = metrics.GetBestValidationRequest(experiment_id=self._session.connection.experiment_id)
        response = self._session.retry_during_outage(
            lambda: self._session.metrics.GetBestValidation(request), purpose="asking for the best validation"
        )
        return response.experiment_best.value if response.HasField("experiment_best") else None

    def last_validation_steps(self) -> int | None:
        """Steps of the newest validation of this trial, of earlier runs too."""
        self._flush()
        request = metrics.ListSummariesRequest(
            trial_ids=[self._trial_id], groups=["validation"], order_by="last_steps desc", page_size=1
        )
        response = self._session.retry_during_outage(
            lambda: self._session.metrics.ListSummaries(request), purpose="asking for the last validation"
        )
        return max((summary.last_steps for summary in response.summaries), default=None)

    def report_progress(self, progress: float) -> None:
        """Says which share of the trial is done."""
        self._movement.advance()
        request = searcher.ReportProgressRequest(
            trial_id=self._trial_id, run=self._run, progress=progress * self._length
        )
        self._session.retry_during_outage(
            lambda: self._session.searcher.ReportProgress(request), purpose="reporting progress"
        )

    def report_early_exit(self, reason: EarlyExitReason, message: str) -> None:
        """Leaves the reason for the supervisor, whose report of the exit carries it."""
        if not self._run_directory.write_early_exit(EarlyExit(reason.name, message)):
            _log.warning("an early exit was reported before; %s is ignored", reason.name)

    def set_metadata(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Replaces the trial's free metadata and returns it."""
        return self._exchange_metadata(
            trials.SetTrialStatusRequest(trial_id=self._trial_id, run=self._run, metadata=to_value(metadata))
        )

    def metadata(self) -> dict[str, Any]:
        """The trial's free metadata."""
        return self._exchange_metadata(trials.SetTrialStatusRequest(trial_id=self._trial_id, run=self._run))

    def _exchange_metadata(self, request: trials.SetTrialStatusRequest) -> dict[str, Any]:
        response = self._session.retry_during_outage(
            lambda: self._session.trials.SetTrialStatus(request), purpose="exchanging metadata"
        )
        if not response.HasField("metadata"):
            raise UnimplementedError("this cluster is too old to keep metadata of trials; upgrade it")
        return to_mapping(response.metadata)

    @property
    def _trial_id(self) -> str:
        return self._session.connection.trial_id

    @property
    def _run(self) -> int:
        return self._session.connection.run


class UnmanagedTrialRecord(RemoteTrialRecord):
    """The record of a trial outside of the cluster, which no search drives."""

    def report_progress(self, progress: float) -> None:
        """Shows which share of the trial is done as its status."""
        self.set_status(f"{progress:.0%} done")
