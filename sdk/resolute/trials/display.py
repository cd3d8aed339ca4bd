"""The terminal output of training off cluster."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Protocol

from resolute.trials.counters import Progress


class Display(Protocol):
    """Shows the progress of training."""

    def segment(self, progress: Progress, end: int) -> None:
        """Called when training continues, with its target step."""

    def boundary(self, progress: Progress) -> None:
        """Called at a boundary: a report, a validation or a checkpoint."""

    def validation(self, metrics: Mapping[str, Any], progress: Progress) -> None:
        """Called after a validation, with its metrics."""

    def close(self) -> None:
        """Called at the end of training."""


class NullDisplay:
    """Shows nothing: on a cluster, in tests, and if the output is a file."""

    def segment(self, progress: Progress, end: int) -> None:
        """Shows nothing."""

    def boundary(self, progress: Progress) -> None:
        """Shows nothing."""

    def validation(self, metrics: Mapping[str, Any], progress: Progress) -> None:
        """Shows nothing."""

    def close(self) -> None:
        """Shows nothing."""


class ProgressBar:
    """A bar of progress, and a line for each validation."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self._progress = RichProgress(
            TextColumn("training"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("batches"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._progress.add_task("training", total=None)
        self._progress.start()

    def segment(self, progress: Progress, end: int) -> None:
        """Sets the length of the bar."""
        self._progress.update(self._task, total=end, completed=progress.step)

    def boundary(self, progress: Progress) -> None:
        """Moves the bar."""
        self._progress.update(self._task, completed=progress.step)

    def validation(self, metrics: Mapping[str, Any], progress: Progress) -> None:
        """Prints the metrics of a validation."""
        numbers = ", ".join(
            f"{name} {value:.6g}" for name, value in metrics.items() if isinstance(value, (int, float))
        )
        self._progress.console.print(f"after {progress.step} batches: {numbers}")

    def close(self) -> None:
        """Ends the bar."""
        self._progress.stop()


def choose_display(*, on_cluster: bool, rank: int) -> Display:
    """Returns a progress bar for the chief at a terminal, otherwise a display that shows nothing."""
    return ProgressBar() if rank == 0 and not on_cluster and sys.stderr.isatty() else NullDisplay()
