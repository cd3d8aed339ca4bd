"""The record of a trial besides its metrics: status, progress, metadata."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Protocol

from resolute.core.reporting.early_exit import EarlyExitReason

_log = logging.getLogger("resolute.core")


class TrialRecord(Protocol):
    """The platform's record of a trial."""

    def set_status(self, status: str) -> None:
        """Shows a word or two to people. Never fails: it is for display only."""

    def best_validation(self) -> float | None:
        """Best value of the searcher's metric in the whole experiment, or None before any validation."""

    def last_validation_steps(self) -> int | None:
        """Steps of the newest validation, or None before the first."""

    def report_progress(self, progress: float) -> None:
        """Says which share of the trial is done."""

    def report_early_exit(self, reason: EarlyExitReason, message: str) -> None:
        """Records why the trial ends early; only the first reason counts. ``message`` is shown to people."""

    def set_metadata(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Replaces the trial's free metadata and returns it."""

    def metadata(self) -> dict[str, Any]:
        """The trial's free metadata."""


class LocalTrialRecord:
    """The record of a trial off cluster: it logs reports, and returns the values that were reported here."""

    def __init__(self) -> None:
        self._metadata: dict[str, Any] = {}

    def set_status(self, status: str) -> None:
        """Logs the status."""
        _log.debug("status: %s", status)

    def best_validation(self) -> float | None:
        """Returns None: off cluster no metric decides."""
        return None

    def last_validation_steps(self) -> int | None:
        """Returns None: off cluster, every process starts from the beginning."""
        return None

    def report_progress(self, progress: float) -> None:
        """Logs the share."""
        _log.info("progress: %.1f %%", progress * 100)

    def report_early_exit(self, reason: EarlyExitReason, message: str) -> None:
        """Logs the reason."""
        _log.info("early exit: %s", f"{reason.name}: {message}" if message else reason.name)

    def set_metadata(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Keeps the metadata for this process."""
        self._metadata = dict(metadata)
        return dict(self._metadata)

    def metadata(self) -> dict[str, Any]:
        """What this process kept."""
        return dict(self._metadata)
