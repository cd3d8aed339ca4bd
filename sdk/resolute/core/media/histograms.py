"""Histograms: counts of values in ranges of equal width."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from resolute.core.media.arrays import to_array

_RANGES = 64
"""In how many a histogram of other ranges is drawn."""


def histogram_content(values: Any, *, bins: int) -> bytes:
    """Returns a histogram as JSON: ``counts``, ``edges``, and how many values were ``left_out``.

    Args:
        values: An array, a tensor, or lists of numbers. NaN and infinities are left out and counted.
        bins: How many ranges.

    Raises:
        TypeError: It holds something else than numbers.
        ValueError: No number is left, or ``bins`` is below 1.
    """
    import numpy as np

    array = to_array(values).ravel()
    finite = array[np.isfinite(array)].astype(np.float64)
    if not finite.size:
        raise ValueError(f"none of its {array.size} values is a finite number; log it once there are some")
    counts, edges = np.histogram(finite, bins=bins)
    left_out = int(array.size - finite.size)
    content = {"counts": counts.tolist(), "edges": edges.tolist(), "left_out": left_out}
    return json.dumps(content, separators=(",", ":")).encode()


def ranges_content(ranges: Sequence[tuple[float, float, float]]) -> bytes:
    """Returns a histogram of counts in ranges of any width, in which values count as spread evenly.

    Args:
        ranges: From, to and count, ascending. Empty ones at both ends are left out.

    Raises:
        ValueError: No range has a value.
    """
    import numpy as np

    filled = [number for number, (_, _, count) in enumerate(ranges) if count]
    if not filled:
        raise ValueError("it has no values; log it once there are some")
    lefts, rights, counts = np.asarray(ranges[filled[0] : filled[-1] + 1], dtype=np.float64).T
    least, most = float(lefts[0]), float(rights[-1])
    if not most > least:
        least, most = least - 0.5, most + 0.5
        lefts, rights = np.full_like(lefts, least), np.full_like(rights, most)
    edges = np.linspace(least, most, _RANGES + 1)
    shares = (edges[:, np.newaxis] - lefts) / np.maximum(rights - lefts, np.finfo(np.float64).tiny)
    below = (np.clip(shares, 0, 1) * counts).sum(axis=1)
    content = {"counts": np.diff(below).round(2).tolist(), "edges": edges.tolist(), "left_out": 0}
    return json.dumps(content, separators=(",", ":")).encode()
