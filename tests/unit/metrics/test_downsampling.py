"""A downsampled series looks like the whole one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolute_metrics.queries.curves.downsampling import MIN_POINTS, downsample

VALUES = st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=400)


@given(VALUES, st.integers(MIN_POINTS, 100))
def test_it_is_short_enough_ascends_and_keeps_ends_and_extremes(numbers: list[float], most: int) -> None:
    values = np.array(numbers)
    kept = downsample(values, most)
    assert len(kept) <= most or len(kept) == len(values) <= most
    assert (np.diff(kept) > 0).all()
    assert (kept[0], kept[-1]) == (0, len(values) - 1)
    finite = values[np.isfinite(values)]
    if len(finite):
        left = values[kept][np.isfinite(values[kept])]
        assert (left.min(), left.max()) == (finite.min(), finite.max())


def test_a_short_series_stays_whole() -> None:
    assert downsample(np.array([3.0, np.nan, 1.0]), 4).tolist() == [0, 1, 2]


def test_a_stretch_without_finite_values_shows_as_a_gap() -> None:
    values = np.ones(1000)
    values[400:600] = np.nan
    kept = downsample(values, 22)
    assert np.isnan(values[kept]).any()


def test_single_nans_among_numbers_are_left_out() -> None:
    values = np.arange(1000, dtype=np.float64)
    values[1:999:3] = np.nan
    assert np.isfinite(values[downsample(values, 50)]).all()


@pytest.mark.parametrize("most", [4, 5, 6, 7, 100, 999])
def test_each_stretch_keeps_its_own_extremes(most: int) -> None:
    values = np.random.default_rng(0).normal(size=1000)
    kept = set(downsample(values, most).tolist())
    length = -(-998 // ((most - 2) // 2))
    for start in range(1, 999, length):
        stretch = values[start : min(start + length, 999)]
        assert {start + int(stretch.argmin()), start + int(stretch.argmax())} <= kept
