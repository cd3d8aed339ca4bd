"""Progress lines of an epoch or a validation."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any


class ProgressLines:
    """Writes a line for each 10 % of an epoch or a validation.

    Args:
        shown: Whether to write lines.
    """

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._next = 0

    def begin(self, heading: str, total: int | None) -> None:
        """Begins an epoch or a validation."""
        self._next = 0
        self.advance(heading, 0, total)

    def advance(
        self, heading: str, done: int, total: int | None, logs: Mapping[str, Any] | None = None
    ) -> None:
        """Writes a line when another 10 % are done.

        Args:
            heading: What the line begins with.
            done: Batches done.
            total: Batches in all; None where that is not known yet, and nothing is written.
            logs: Metrics.
        """
        if not self._shown or not total or done * 10 < self._next * total:
            return
        self._next = done * 10 // total + 1
        metrics = " ".join(f"{name}={value:.6g}" for name, value in _numbers(logs))
        line = f"{heading} {done * 100 // total}% complete ({done}/{total})"
        sys.stdout.write(f"{line}: {metrics}\n" if metrics else f"{line}\n")
        sys.stdout.flush()


def _numbers(logs: Mapping[str, Any] | None) -> list[tuple[str, float]]:
    return [(name, value) for name, value in (logs or {}).items() if isinstance(value, (int, float))]
