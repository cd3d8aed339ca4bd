"""Downsamples a series without a visible change of its plot."""

from __future__ import annotations

import numpy as np

from resolute_metrics.store.rows import Floats, Integers

MIN_POINTS = 4
"""Fewest points of a downsampled series: both ends and both extremes."""
MAX_POINTS = 3 * 1024 * 1024 // 24
"""Points of a series that fit into one response, whose clients take 4 MiB."""


def downsample(values: Floats, most: int) -> Integers:
    """Selects points: the first, the last, and the smallest and largest of each segment between them.

    A stretch that holds nothing finite keeps its first point, so that a plot shows the gap; otherwise NaN and
    infinities are left out.

    Args:
        values: The series.
        most: Most points, at least ``MIN_POINTS``.

    Returns:
        Ascending indices.
    """
    count = len(values)
    if count <= most:
        return np.arange(count, dtype=np.int64)
    inner = values[1:-1]
    length = -(-len(inner) // ((most - 2) // 2))
    stretches = -(-len(inner) // length)
    finite = np.isfinite(inner)
    low = np.full(stretches * length, np.inf)
    high = np.full(stretches * length, -np.inf)
    low[: len(inner)] = np.where(finite, inner, np.inf)
    high[: len(inner)] = np.where(finite, inner, -np.inf)
    starts = 1 + length * np.arange(stretches, dtype=np.int64)
    smallest = starts + low.reshape(stretches, length).argmin(axis=1)
    largest = starts + high.reshape(stretches, length).argmax(axis=1)
    return np.unique(np.concatenate([[0], smallest, largest, [count - 1]])).astype(np.int64, copy=False)
