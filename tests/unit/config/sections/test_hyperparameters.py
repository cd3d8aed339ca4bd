"""The hyperparameters section."""

from typing import Any

import pytest
from unit.config.conftest import Accept, Refuse

from resolute_config.sections.hyperparameters import (
    Categorical,
    Const,
    DoubleRange,
    IntRange,
    LogRange,
    leaves,
)

GRID = {"name": "grid", "metric": "loss", "max_length": 1}


def test_every_kind_is_read(accept: Accept) -> None:
    space = {
        "c": {"type": "const", "val": {"deep": [1, None]}},
        "n": {"type": "int", "minval": -3, "maxval": 3, "count": 2},
        "d": {"type": "double", "minval": 0, "maxval": 0.5},
        "l": {"type": "log", "base": 10, "minval": -4, "maxval": -1, "count": None},
        "k": {"type": "categorical", "vals": ["sgd", 1, None, {"a": 1}]},
    }
    assert accept(hyperparameters=space).hyperparameters == {
        "c": Const(val={"deep": [1, None]}),
        "n": IntRange(minval=-3, maxval=3, count=2),
        "d": DoubleRange(minval=0, maxval=0.5),
        "l": LogRange(base=10, minval=-4, maxval=-1),
        "k": Categorical(vals=("sgd", 1, None, {"a": 1})),
    }


@pytest.mark.parametrize("value", [32, 0.1, "adam", True, None, [1, [2]], []])
def test_a_bare_value_is_a_constant(accept: Accept, value: Any) -> None:
    assert accept(hyperparameters={"x": value}).hyperparameters == {"x": Const(val=value)}


def test_maps_without_a_type_nest(accept: Accept) -> None:
    space = {"optimizer": {"type": {"type": "const", "val": "adam"}, "betas": {"one": 0.9}, "none": {}}}
    config = accept(hyperparameters=space)
    assert config.hyperparameters == {
        "optimizer": {"type": Const(val="adam"), "betas": {"one": Const(val=0.9)}, "none": {}}
    }
    assert list(leaves(config.hyperparameters)) == [
        (("optimizer", "type"), Const(val="adam")),
        (("optimizer", "betas", "one"), Const(val=0.9)),
    ]


def test_constants_are_shown_in_full(accept: Accept) -> None:
    shown = accept(hyperparameters={"x": 1, "y": {"z": None}}).to_dict()["hyperparameters"]
    assert shown == {"x": {"type": "const", "val": 1}, "y": {"z": {"type": "const", "val": None}}}


def test_numbers_stay_as_they_were_written(accept: Accept) -> None:
    space = {"d": {"type": "double", "minval": 0, "maxval": 1.0}}
    shown = accept(hyperparameters=space).to_dict()["hyperparameters"]["d"]
    assert (type(shown["minval"]), type(shown["maxval"])) == (int, float)


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"type": "int", "minval": 3, "maxval": 3}, "x.maxval: found 3; expected more than minval (3)"),
        ({"type": "int", "minval": 3, "maxval": 2}, "x.maxval: found 2; expected more than minval (3)"),
        ({"type": "int", "minval": 0.5, "maxval": 2}, "x.minval: found 0.5; expected an integer"),
        ({"type": "int", "minval": False, "maxval": 2}, "x.minval: found false; expected an integer"),
        ({"type": "int", "maxval": 2}, "x.minval: missing; expected the smallest value, an integer"),
        ({"type": "int", "minval": 0, "maxval": 2, "count": 0}, "x.count: found 0; expected 1 or more"),
        (
            {"type": "int", "minval": 0, "maxval": 2, "cuont": 2},
            "x.cuont: unknown field; did you mean 'count'?",
        ),
        (
            {"type": "double", "minval": 1.5, "maxval": 1.5},
            "x.maxval: found 1.5; expected more than minval (1.5)",
        ),
        (
            {"type": "double", "minval": -1.7e308, "maxval": 1.7e308},
            "x.maxval: found 1.7e+308; expected a finite",
        ),
        ({"type": "double", "minval": "0", "maxval": 1}, 'x.minval: found "0"; expected a number'),
        ({"type": "log", "minval": -4, "maxval": -1}, "x.base: missing; expected the base of the power"),
        (
            {"type": "log", "base": 0, "minval": -4, "maxval": -1},
            "x.base: found 0; expected a number greater than 0",
        ),
        (
            {"type": "log", "base": 10, "minval": 1, "maxval": 400},
            "x.maxval: found 400; expected an exponent for",
        ),
        (
            {"type": "categorical", "vals": []},
            "x.vals: found an empty list; expected a list that is not empty",
        ),
        ({"type": "categorical", "vals": "abc"}, 'x.vals: found "abc"; expected a list'),
        ({"type": "categorical"}, "x.vals: missing; expected the list of values, at least one"),
        ({"type": "const"}, "x.val: missing; expected the value"),
        ({"type": "flaot"}, 'x.type: found "flaot"; expected one of const, int, double, log, categorical'),
        (
            {"type": "doubel"},
            'x.type: found "doubel"; expected one of const, int, double, log, categorical; did you',
        ),
        (
            {"type": None},
            "x.type: found null; expected one of const, int, double, log, categorical; a hyperparameter",
        ),
        ({"deep": {"type": 5}}, "x.deep.type: found 5; expected one of"),
        ({"": 1}, "x: a hyperparameter has an empty name"),
    ],
)
def test_impossible_ranges_are_refused(refuse: Refuse, value: Any, fault: str) -> None:
    faults = refuse(hyperparameters={"x": value})
    assert len(faults) == 1
    assert faults[0].startswith(f"hyperparameters.{fault}")


def test_every_faulty_hyperparameter_is_listed(refuse: Refuse) -> None:
    space = {"a": {"type": "int"}, "b": {"c": {"type": "log", "base": -1, "minval": 2, "maxval": 1}}}
    assert [fault.split(":")[0] for fault in refuse(hyperparameters=space)] == [
        "hyperparameters.a.minval",
        "hyperparameters.a.maxval",
        "hyperparameters.b.c.base",
        "hyperparameters.b.c.maxval",
    ]


def test_hyperparameters_are_a_map(refuse: Refuse) -> None:
    assert refuse(hyperparameters=[1]) == [
        "hyperparameters: found a list of 1; expected a map of hyperparameters"
    ]


def test_a_grid_needs_a_count_for_every_range(refuse: Refuse) -> None:
    space = {
        "n": {"type": "int", "minval": 0, "maxval": 3},
        "deep": {"lr": {"type": "log", "base": 10, "minval": -3, "maxval": -1}},
        "d": {"type": "double", "minval": 0, "maxval": 3, "count": 2},
        "k": {"type": "categorical", "vals": [1, 2]},
        "c": 1,
    }
    reason = "missing; expected the number of points on the grid, because searcher.name is grid"
    assert refuse(searcher=GRID, hyperparameters=space) == [
        f"hyperparameters.n.count: {reason}",
        f"hyperparameters.deep.lr.count: {reason}",
    ]


def test_the_count_of_a_range_may_exceed_its_points(accept: Accept) -> None:
    space = {"n": {"type": "int", "minval": 0, "maxval": 3, "count": 10**9}}
    assert accept(searcher=GRID, hyperparameters=space)


def test_a_grid_that_is_too_large_is_refused(refuse: Refuse) -> None:
    axis = {"type": "double", "minval": 0, "maxval": 1, "count": 1000}
    (fault,) = refuse(searcher=GRID, hyperparameters={"a": axis, "b": axis})
    assert fault.startswith("hyperparameters: the grid has 1000000 points; expected at most 100000")


def test_other_searches_need_no_counts(accept: Accept) -> None:
    assert accept(hyperparameters={"n": {"type": "int", "minval": 0, "maxval": 3}})
