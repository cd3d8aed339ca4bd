"""The aggregates of each column of a stream: six numbers that every write updates.

NaN and infinities are stored like any value, and are counted as nonfinite. They may be the last value, but
never the smallest or largest one, and are not part of the sum.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from resolute_metrics.store.rows import Floats


class Row(IntEnum):
    """The rows of the matrix of aggregates, whose columns are the stream's names."""

    COUNT = 0
    SUM = 1
    MIN = 2
    MAX = 3
    NONFINITE = 4
    LAST = 5


def empty(names: int) -> Floats:
    """Returns aggregates of no values."""
    aggregates = np.zeros((len(Row), names), dtype=np.float64)
    aggregates[Row.MIN] = np.inf
    aggregates[Row.MAX] = -np.inf
    aggregates[Row.LAST] = np.nan
    return aggregates


def extend(aggregates: Floats, values: Floats, *, last: int | None) -> Floats:
    """Adds rows of values.

    Args:
        aggregates: What is known so far.
        values: Rows by names; at least one row.
        last: The row that is the newest of all now, if one of these is.
    """
    result: Floats = aggregates.copy()
    finite = np.isfinite(values)
    with np.errstate(over="ignore"):
        if finite.all():
            result[Row.COUNT] += len(values)
            result[Row.SUM] += values.sum(axis=0)
            result[Row.MIN] = np.minimum(result[Row.MIN], values.min(axis=0))
            result[Row.MAX] = np.maximum(result[Row.MAX], values.max(axis=0))
        else:
            counts = finite.sum(axis=0)
            result[Row.COUNT] += counts
            result[Row.NONFINITE] += len(values) - counts
            result[Row.SUM] += np.where(finite, values, 0.0).sum(axis=0)
            result[Row.MIN] = np.minimum(result[Row.MIN], np.where(finite, values, np.inf).min(axis=0))
            result[Row.MAX] = np.maximum(result[Row.MAX], np.where(finite, values, -np.inf).max(axis=0))
    if last is not None:
        result[Row.LAST] = values[last]
    return result


def encode(aggregates: Floats) -> bytes:
    """Packs aggregates."""
    return aggregates.astype("<f8", copy=False).tobytes()


def decode(data: bytes) -> Floats:
    """Unpacks aggregates."""
    return np.frombuffer(data, dtype="<f8").astype(np.float64, copy=False).reshape(len(Row), -1)
