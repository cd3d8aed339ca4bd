"""Aggregates follow every write."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from resolute_metrics.store import aggregates
from resolute_metrics.store.aggregates import Row

PARTS = st.lists(
    st.lists(
        st.floats(-1e6, 1e6) | st.sampled_from([math.nan, math.inf, -math.inf]), min_size=1, max_size=20
    ),
    min_size=1,
    max_size=6,
)


@given(PARTS)
def test_they_are_those_of_all_values_together(parts: list[list[float]]) -> None:
    known = aggregates.empty(1)
    for part in parts:
        known = aggregates.extend(known, np.array(part).reshape(-1, 1), last=len(part) - 1)
    known = aggregates.decode(aggregates.encode(known))
    whole = np.array([value for part in parts for value in part])
    finite = whole[np.isfinite(whole)]
    assert known[Row.COUNT, 0] == len(finite)
    assert known[Row.NONFINITE, 0] == len(whole) - len(finite)
    assert math.isclose(known[Row.SUM, 0], math.fsum(finite), rel_tol=1e-9, abs_tol=1e-6)
    assert known[Row.MIN, 0] == (finite.min() if len(finite) else math.inf)
    assert known[Row.MAX, 0] == (finite.max() if len(finite) else -math.inf)
    assert np.array_equal(known[Row.LAST, 0], parts[-1][-1], equal_nan=True)


def test_older_rows_leave_the_last_value_alone() -> None:
    known = aggregates.extend(aggregates.empty(2), np.array([[1.0, 2.0]]), last=0)
    known = aggregates.extend(known, np.array([[3.0, 4.0]]), last=None)
    assert known[Row.LAST].tolist() == [1, 2]


def test_a_stream_without_numbers_has_empty_aggregates() -> None:
    known = aggregates.extend(aggregates.empty(0), np.zeros((3, 0)), last=2)
    assert aggregates.decode(aggregates.encode(known)).shape == (len(Row), 0)
