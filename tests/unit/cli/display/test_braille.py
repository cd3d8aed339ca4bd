"""Curves as text."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolute.cli.display.text_plot import Size, draw


def test_a_rising_line_goes_from_the_lower_left_to_the_upper_right() -> None:
    lines = draw([0, 1], [0, 1], size=Size(21, 6))
    assert lines == [
        "          1 ┤⠀⠀⠀⠀⠀⠀⡠⠊",
        "            ┤⠀⠀⠀⠀⡠⠊⠀⠀",
        "            ┤⠀⠀⡠⠊⠀⠀⠀⠀",
        "          0 ┤⡠⠊⠀⠀⠀⠀⠀⠀",
        "            └────────",
        "             0      1",
    ]


def test_what_is_not_finite_leaves_a_gap() -> None:
    with_gap = draw([0, 1, 2], [0, math.nan, 0], size=Size())
    whole = draw([0, 1, 2], [0, 0, 0], size=Size())
    assert "".join(with_gap).count("⠀") > "".join(whole).count("⠀")


def test_nothing_finite_is_an_error() -> None:
    with pytest.raises(ValueError, match="no finite value"):
        draw([1], [math.inf], size=Size())


@given(
    ys=st.lists(st.floats(), min_size=1, max_size=30),
    width=st.integers(1, 130),
    height=st.integers(1, 40),
)
def test_any_values_fit_into_the_picture(ys: list[float], width: int, height: int) -> None:
    if not any(map(math.isfinite, ys)):
        return
    lines = draw(range(len(ys)), ys, size=Size(width, height))
    assert len(lines) == max(height - 2, 2) + 2
    assert all(len(line) <= max(width, 30) for line in lines)
