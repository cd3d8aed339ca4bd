"""Histograms: counts of values in ranges of equal width."""

from __future__ import annotations

import json
from typing import Any

from resolute.core.media.arrays import to_array


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
