"""Superseded points: those of an older run that a later run has repeated.

A run that resumes from a checkpoint repeats steps that an older run had reported. The points of both are
stored. The effective series has a run's points up to the first step of any later run in the same group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from resolute_metrics.store.rows import Integers, Mask


def superseded_from(first_steps: Iterable[tuple[int, int]]) -> Mapping[int, int]:
    """Returns the step at which the points of each run end.

    Args:
        first_steps: Runs and first steps in one group; a run may come more than once.

    Returns:
        By run, the step at which its points no longer count; runs that no later run supersedes are left out.
    """
    first_by_run: dict[int, int] = {}
    for run, first in first_steps:
        first_by_run[run] = min(first, first_by_run.get(run, first))
    result: dict[int, int] = {}
    lowest: int | None = None
    for run in sorted(first_by_run, reverse=True):
        if lowest is not None:
            result[run] = lowest
        lowest = first_by_run[run] if lowest is None else min(lowest, first_by_run[run])
    return result


def effective_mask(steps: Integers, end: int | None) -> Mask:
    """Returns a mask of the steps below the end of a run's points; None for no end."""
    if end is None:
        return np.ones(len(steps), dtype=np.bool_)
    result: Mask = steps < end
    return result
