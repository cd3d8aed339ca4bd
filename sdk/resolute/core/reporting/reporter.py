"""Receivers of metric reports, on cluster and off."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Protocol

from resolute.contracts.spool.format import Media
from resolute.spool.omissions import CountedWarnings, Omissions
from resolute.spool.values import flatten

_log = logging.getLogger("resolute.core")


class Reporter(Protocol):
    """Receives metric reports. On a cluster it is a ``resolute.spool.report_writer.ReportWriter``."""

    @property
    def omissions(self) -> Omissions:
        """Receives what cannot be recorded."""

    def report(self, group: str, steps: int, metrics: Mapping[str, Any]) -> None:
        """Takes one report; once this returns, a crash of the process does not lose it."""

    def log_media(self, media: Media) -> None:
        """Takes one image, table and so on; once this returns, a crash of the process does not lose it."""

    def flush(self, timeout: float | None = None) -> None:
        """Waits until the services have stored every report so far; does not wait for media."""

    def confirm(self) -> None:
        """Waits like ``flush``, and raises an error if a service refused a report."""

    def close(self) -> None:
        """Takes no more reports."""


class LogReporter:
    """Checks reports off cluster as on a cluster, and logs them.

    Args:
        omissions: Receives values that cannot be recorded. By default they are counted and logged.
    """

    def __init__(self, omissions: Omissions | None = None) -> None:
        self.omissions = omissions or CountedWarnings(_log.warning)

    def report(self, group: str, steps: int, metrics: Mapping[str, Any]) -> None:
        """Logs one report."""
        _log.info("%s metrics at %d steps: %s", group, steps, flatten(metrics, self.omissions))

    def log_media(self, media: Media) -> None:
        """Logs name, kind and size of the object, without its content."""
        size = len(media.content)
        _log.info("%s %r at %d steps: %d bytes %s", media.kind, media.name, media.steps, size, media.caption)

    def flush(self, timeout: float | None = None) -> None:
        """Does nothing: nothing waits to be sent."""

    def confirm(self) -> None:
        """Does nothing: no service refuses reports."""

    def close(self) -> None:
        """Logs how many values were left out."""
        self.omissions.finish()
