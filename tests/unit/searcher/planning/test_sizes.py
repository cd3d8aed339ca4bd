"""Searches whose trials would take too much memory are refused before anything is made of them."""

from __future__ import annotations

import pytest

from resolute.errors import InvalidArgumentError
from resolute_searcher.spec.grid import Grid, grid_size
from resolute_searcher.spec.search import GridSpec, RandomSpec, SearchSpec
from resolute_searcher.spec.sizes import MAX_INITIAL_BYTES, MAX_SAMPLE_BYTES, check_size
from resolute_searcher.spec.space import Categorical, Const, DoubleRange, IntRange, LogRange, Space


def test_the_points_of_a_grid_are_counted_without_being_made() -> None:
    space = Space(
        {"x": DoubleRange(0.0, 1.0, count=2**62), "g": Space({"y": LogRange(0.0, 1.0, count=2**62)})}
    )
    assert grid_size(space) == 2**124
    with pytest.raises(InvalidArgumentError, match="must be from 1 to 1000000"):
        SearchSpec(GridSpec(max_length=1), space=space).check()


def test_the_count_is_that_of_the_grid() -> None:
    space = Space(
        {
            "a": Const(1),
            "b": IntRange(0, 4, count=9),
            "c": Categorical(("u", "v")),
            "d": Space({"e": DoubleRange(0.0, 1.0, count=3)}),
            "f": Space(),
        }
    )
    assert grid_size(space) == Grid(space).size == 30


@pytest.mark.parametrize(
    ("space", "trials"),
    [
        (Space({"x": Const("y" * MAX_SAMPLE_BYTES)}), 1),
        (Space({"x": Categorical((1, {"y": ["z" * MAX_SAMPLE_BYTES]}))}), 1),
        (Space({"g": Space({"x": Const("y" * (MAX_INITIAL_BYTES // 1000))})}), 1000),
    ],
)
def test_hyperparameters_that_take_too_much_memory_are_refused(space: Space, trials: int) -> None:
    spec = SearchSpec(RandomSpec(max_length=1, max_trials=trials, max_concurrent_trials=0), space=space)
    spec.check()
    with pytest.raises(InvalidArgumentError, match="bytes"):
        check_size(spec)


def test_usual_searches_fit() -> None:
    space = Space({f"x{number}": Categorical(("relu", "gelu")) for number in range(100)})
    check_size(SearchSpec(RandomSpec(max_length=1, max_trials=20_000, max_concurrent_trials=0), space=space))
