"""Grid points and their order."""

from __future__ import annotations

from typing import Any

import pytest

from resolute_searcher.log.events import Started
from resolute_searcher.log.operations import Create
from resolute_searcher.spec.grid import Grid
from resolute_searcher.spec.search import GridSpec, SearchSpec
from resolute_searcher.spec.space import Categorical, Const, DoubleRange, IntRange, LogRange, Space
from resolute_searcher.state_machine.search import Search


def points(space: Space) -> list[dict[str, Any]]:
    grid = Grid(space)
    return [grid.point(number) for number in range(grid.size)]


def values(axis: IntRange | DoubleRange | LogRange) -> list[float]:
    return [point["x"] for point in points(Space({"x": axis}))]


def test_the_last_axis_varies_fastest() -> None:  # as release 0.30 does
    space = Space({"1": IntRange(0, 20, count=3), "2": IntRange(0, 10, count=3)})
    assert points(space) == [{"1": x, "2": y} for x in (0, 10, 20) for y in (0, 5, 10)]


def test_nested_axes_are_taken_depth_first() -> None:  # as release 0.30 does
    space = Space({"1": Space({"1": IntRange(0, 20, count=3)}), "2": IntRange(0, 10, count=3)})
    assert points(space) == [{"1": {"1": x}, "2": y} for x in (0, 10, 20) for y in (0, 5, 10)]


def test_whole_numbers_are_never_repeated() -> None:  # as release 0.30 does
    assert values(IntRange(0, 4, count=5)) == [0, 1, 2, 3, 4]
    assert values(IntRange(-4, -2, count=3)) == [-4, -3, -2]
    assert values(IntRange(0, 2, count=50)) == [0, 1, 2]


def test_halves_are_rounded_away_from_zero() -> None:  # as release 0.30 does
    assert values(IntRange(0, 5, count=1)) == [3]
    assert values(IntRange(-5, 0, count=1)) == [-3]
    assert values(IntRange(0, 5, count=3)) == [0, 3, 5]


def test_reals_are_spread_evenly() -> None:  # as release 0.30 does
    assert values(DoubleRange(1.0, 2.0, count=1)) == [1.5]
    assert values(DoubleRange(0.0, 1.0, count=5)) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert values(LogRange(-3.0, -1.0, base=10.0, count=3)) == pytest.approx([0.001, 0.01, 0.1])
    assert values(LogRange(-3.0, -1.0, base=10.0, count=1)) == pytest.approx([0.01])


def test_the_number_of_points_is_the_product_of_the_axes() -> None:  # as release 0.30 does
    counts = (2, 2, 3, 3, 4, 5)
    axes = {str(i): DoubleRange(0.0, 1.0, count=count) for i, count in enumerate(counts)}
    assert Grid(Space(axes)).size == 720


def test_deeply_nested_grids_give_distinct_points() -> None:  # as release 0.30 does
    space = Space(
        {
            "a": Space(
                {"b": Space({"c1": IntRange(3, 5, count=2), "c2": IntRange(7, 11, count=2)}), "e": Const("k")}
            ),
            "f": IntRange(13, 17, count=2),
            "l": Categorical((10, 100)),
        }
    )
    found = points(space)
    assert len({repr(point) for point in found}) == 16
    assert found[0] == {"a": {"b": {"c1": 3, "c2": 7}, "e": "k"}, "f": 13, "l": 10}
    assert found[-1] == {"a": {"b": {"c1": 5, "c2": 11}, "e": "k"}, "f": 17, "l": 100}


def test_a_search_takes_points_from_the_end() -> None:  # as release 0.30 does
    space = Space({"x": IntRange(0, 3, count=4), "empty": Space()})
    search = Search(SearchSpec(method=GridSpec(max_length=1, max_concurrent_trials=2), space=space))
    entry = search.record(Started())
    assert entry is not None
    created = [operation.hparams for operation in entry.operations if isinstance(operation, Create)]
    assert created == [{"empty": {}, "x": 3}, {"empty": {}, "x": 2}]


def test_a_huge_grid_is_not_held_in_memory() -> None:
    grid = Grid(Space({str(axis): IntRange(0, 999, count=1000) for axis in range(6)}))
    assert grid.size == 1000**6
    assert grid.point(1000**6 - 1) == {str(axis): 999 for axis in range(6)}
