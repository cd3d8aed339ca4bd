"""Batches that a trial leaves out because its experiment's guard resumed from a checkpoint before them."""

from __future__ import annotations

from collections.abc import Iterable

from resolute import core
from resolute.info import trial_of


class SkippedBatches:
    """The batches that are read but not trained.

    Args:
        ranges: Numbers of the first batch of each range, from 0, and of the one after the last.
        together: Number of batches of one optimizer step. Either all of them are left out, or none.
    """

    def __init__(self, ranges: Iterable[tuple[int, int]], *, together: int = 1) -> None:
        self._ranges = [
            (first // together * together, -(-end // together) * together) for first, end in ranges
        ]

    @classmethod
    def of(cls, context: core.Context, *, together: int = 1) -> SkippedBatches:
        """Those of the trial that this process is part of; none off cluster."""
        trial = trial_of(context.info)
        return cls(() if trial is None else trial.skipped_batches, together=together)

    def __contains__(self, step: int) -> bool:
        return any(first <= step < end for first, end in self._ranges)
