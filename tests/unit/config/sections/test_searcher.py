"""The searcher section."""

from typing import Any

import pytest
from unit.config.conftest import Accept, Refuse

from resolute_config.sections.length import Length
from resolute_config.sections.searcher import (
    AdaptiveAshaSearcher,
    AsyncHalvingSearcher,
    CustomSearcher,
    GridSearcher,
    RandomSearcher,
    SingleSearcher,
)

ASHA = {"name": "adaptive_asha", "metric": "loss", "max_trials": 16}
HALVING = {"name": "async_halving", "metric": "loss", "max_trials": 16, "num_rungs": 3}


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        (
            {"name": "single", "metric": "loss", "max_length": {"epochs": 2}},
            SingleSearcher(metric="loss", max_length=Length(2, "epochs")),
        ),
        (
            {"name": "random", "metric": "acc", "smaller_is_better": False, "max_length": 5, "max_trials": 3},
            RandomSearcher(
                metric="acc",
                smaller_is_better=False,
                max_length=Length(5),
                max_trials=3,
                max_concurrent_trials=16,
            ),
        ),
        (
            {"name": "grid", "metric": "loss", "max_length": {"records": 9}, "max_concurrent_trials": 0},
            GridSearcher(metric="loss", max_length=Length(9, "records"), max_concurrent_trials=0),
        ),
        (
            {**ASHA, "max_length": 64},
            AdaptiveAshaSearcher(
                metric="loss",
                max_trials=16,
                max_length=Length(64),
                mode="standard",
                divisor=4,
                max_rungs=5,
                max_concurrent_trials=16,
                bracket_rungs=(),
                stop_once=False,
            ),
        ),
        (
            {**HALVING, "max_length": {"batches": 64}, "divisor": 3.5, "stop_once": True},
            AsyncHalvingSearcher(
                metric="loss",
                max_trials=16,
                num_rungs=3,
                max_length=Length(64, "batches"),
                divisor=3.5,
                stop_once=True,
            ),
        ),
        (
            {**HALVING, "name": "asha", "max_length": {"batches": 64}},
            AsyncHalvingSearcher(metric="loss", max_trials=16, num_rungs=3, max_length=Length(64, "batches")),
        ),
    ],
)
def test_every_search_is_read_with_its_defaults(accept: Accept, section: Any, expected: Any) -> None:
    assert accept(searcher=section).searcher == expected


def test_a_custom_search_keeps_fields_that_are_not_known_here(accept: Accept) -> None:
    searcher = accept(
        searcher={"name": "custom", "metric": "loss", "unit": "epochs", "budget": {"x": 1}}
    ).searcher
    assert isinstance(searcher, CustomSearcher)
    assert searcher.unit == "epochs"
    assert searcher.model_dump()["budget"] == {"x": 1}


@pytest.mark.parametrize("name", ["adaptive", "sync_halving", "pbt"])
def test_removed_searches_name_their_successor(refuse: Refuse, name: str) -> None:
    section = {"name": name, "metric": "loss", "budget": 100, "train_stragglers": True, "num_rounds": 3}
    (fault,) = refuse(searcher=section)
    assert fault.startswith(f"searcher.name: {name} was removed, use adaptive_asha, such as {{name: ")


def test_an_unknown_search_lists_the_known_ones_and_the_nearest(refuse: Refuse) -> None:
    (fault,) = refuse(searcher={"name": "adaptiv_asha", "metric": "loss"})
    assert fault == (
        'searcher.name: found "adaptiv_asha"; expected one of single, random, grid, adaptive_asha, '
        "async_halving, optuna, custom, plugin; did you mean 'adaptive_asha'?"
    )


def test_a_search_without_a_name_has_its_other_fields_checked_too(refuse: Refuse) -> None:
    assert refuse(searcher={"smaller_is_better": 1, "source_trial_id": 0}) == [
        "searcher.smaller_is_better: found 1; expected true or false",
        "searcher.source_trial_id: found 0; expected 1 or more",
        (
            "searcher.name: missing; expected one of single, random, grid, adaptive_asha, async_halving, "
            "optuna, custom, plugin"
        ),
        "searcher.metric: missing; expected the name of the validation metric that the search compares",
    ]


def test_a_search_needs_a_metric(refuse: Refuse) -> None:
    assert refuse(searcher={"name": "single", "max_length": {"batches": 1}}) == [
        "searcher.metric: missing; expected the name of the validation metric that the search compares"
    ]


@pytest.mark.parametrize(
    ("section", "fault"),
    [
        (
            {"name": "random", "max_length": 1},
            "max_trials: missing; expected the number of trials, 1 or more",
        ),
        ({"name": "random", "max_length": 1, "max_trials": 0}, "max_trials: found 0; expected 1 or more"),
        (
            {"name": "random", "max_length": 1, "max_trials": True},
            "max_trials: found true; expected an integer",
        ),
        (
            {"name": "random", "max_length": 1, "max_trials": "4"},
            'max_trials: found "4"; expected an integer',
        ),
        (
            {"name": "random", "max_length": 1, "max_trials": 1.5},
            "max_trials: found 1.5; expected an integer",
        ),
        (
            {"name": "grid", "max_length": 1, "max_concurrent_trials": -1},
            "max_concurrent_trials: found -1; expected 0",
        ),
        ({"name": "grid", "max_length": 1, "max_trials": 2}, "max_trials: unknown field"),
        (
            {"name": "single", "max_length": {"batches": 0}},
            "max_length: found 0 batches; expected exactly one of",
        ),
        (
            {"name": "single", "max_length": {}},
            "max_length: found a map with nothing; expected exactly one of",
        ),
        (
            {"name": "single", "max_length": {"steps": 1}},
            "max_length: found a map with steps; expected exactly one of",
        ),
        ({"name": "single", "max_length": -1}, "max_length: found -1; expected exactly one of"),
        ({"name": "single", "max_length": True}, "max_length: found true; expected exactly one of"),
        (
            {"name": "single", "max_steps": 0},
            "max_steps: unknown field; removed; give the length of a trial as",
        ),
        ({**ASHA, "max_length": 0}, "max_length: found 0; expected exactly one of"),
        (
            {"name": "optuna", "metric": "loss", "max_trials": 2, "max_length": 0},
            "max_length: found 0; expected exactly one of",
        ),
        ({**ASHA, "max_length": 1, "divisor": 1}, "divisor: found 1; expected a number greater than 1"),
        ({**ASHA, "max_length": 1, "divisor": True}, "divisor: found true; expected a number"),
        ({**ASHA, "max_length": 1, "mode": "slow"}, 'mode: found "slow"; expected one of'),
        ({**ASHA, "max_length": 1, "max_rungs": 0}, "max_rungs: found 0; expected 1 or more"),
        ({**ASHA, "max_length": 1, "bracket_rungs": [2, 0]}, "bracket_rungs[1]: found 0; expected 1 or more"),
        ({**ASHA, "max_length": 1, "bracket_rungs": 2}, "bracket_rungs: found 2; expected a list"),
        ({**HALVING, "max_length": 64}, "max_length: found 64; expected exactly one of"),
        ({**HALVING, "max_length": {"batches": 4}, "num_rungs": 0}, "num_rungs: found 0; expected 1 or more"),
    ],
)
def test_impossible_values_are_refused(refuse: Refuse, section: dict[str, Any], fault: str) -> None:
    faults = refuse(searcher={"metric": "loss", **section})
    assert len(faults) == 1
    assert faults[0].startswith(f"searcher.{fault}")


def test_a_length_of_two_units_is_refused(refuse: Refuse) -> None:
    (fault,) = refuse(
        searcher={"name": "single", "metric": "loss", "max_length": {"batches": 1, "epochs": 2}}
    )
    assert fault.startswith("searcher.max_length: found a map with batches, epochs; expected exactly one of")


def test_only_one_source_to_start_from(refuse: Refuse) -> None:
    section = {"name": "single", "metric": "loss", "source_trial_id": 3, "source_checkpoint_uuid": "abc"}
    (fault,) = refuse(searcher=section)
    assert fault == (
        "searcher.source_checkpoint_uuid: source_trial_id and source_checkpoint_uuid are both given; "
        "expected at most one of them"
    )


def test_searches_that_do_not_stop_trials_need_no_length(accept: Accept) -> None:
    assert accept(searcher={"name": "single", "metric": "loss"}).searcher.model_dump()["max_length"] is None
    random = {"name": "random", "metric": "loss", "max_trials": 4}
    assert accept(searcher=random).searcher.model_dump()["max_length"] is None


def test_halving_by_time_needs_no_length(accept: Accept) -> None:
    searcher = accept(searcher={**ASHA, "max_time": 900, "time_metric": "batches"}).searcher
    assert isinstance(searcher, AdaptiveAshaSearcher)
    assert (searcher.max_length, searcher.max_time, searcher.time_metric) == (None, 900, "batches")
    assert accept(searcher={**HALVING, "max_time": 9, "time_metric": "epochs"})


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        (
            {},
            "max_length: missing; expected the length of the longest trial, such as {batches: 1000}",
        ),
        ({"max_time": 5}, "time_metric: missing; expected a value, because max_time is given"),
        ({"time_metric": "batches"}, "max_time: missing; expected a value, because time_metric is given"),
        (
            {"max_length": 5, "max_time": 5, "time_metric": "batches"},
            "max_length: max_time and time_metric and max_length are both given; expected either",
        ),
        ({"max_time": 0, "time_metric": "batches"}, "max_time: found 0; expected 1 or more"),
    ],
)
def test_halving_needs_exactly_one_measure_of_length(
    refuse: Refuse, fields: dict[str, Any], fault: str
) -> None:
    faults = refuse(searcher={**ASHA, **fields})
    assert len(faults) == 1
    assert faults[0].startswith(f"searcher.{fault}")
