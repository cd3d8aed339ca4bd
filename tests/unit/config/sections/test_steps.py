"""Lengths in steps, as Determined 0.12 counted them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from resolute.contracts.documents.faults import ConfigError
from resolute_config.loading.parse import parse_config
from resolute_config.loading.steps import steps_warning
from resolute_config.sections.length import Length
from resolute_config.sections.searcher import AsyncHalvingSearcher, SingleSearcher

OLD: dict[str, Any] = {
    "name": "old",
    "entrypoint": "model_def:T",
    "checkpoint_storage": {"type": "directory", "container_path": "/c"},
    "searcher": {"name": "single", "metric": "loss", "max_steps": 10},
    "min_validation_period": 1,
}


@pytest.mark.parametrize(("more", "size"), [({}, 100), ({"batches_per_step": 20}, 20)])
def test_steps_become_batches(more: dict[str, Any], size: int) -> None:
    config = parse_config({**OLD, **more})
    assert isinstance(config.searcher, SingleSearcher)
    assert config.searcher.max_length == Length(10 * size, "batches")
    assert config.min_validation_period == Length(size, "batches")
    assert config.scheduling_unit == size
    (warning,) = steps_warning({**OLD, **more})
    assert f"searcher.max_steps: 10 is searcher.max_length: {{batches: {10 * size}}}" in warning
    assert f"min_validation_period: 1 is {{batches: {size}}}" in warning


def test_null_is_no_number_of_steps() -> None:
    searcher = {"name": "single", "metric": "loss", "max_length": {"batches": 3}}
    nulls = dict.fromkeys(("max_steps", "target_trial_steps", "step_budget", "steps_per_round"))
    document = {**OLD, "min_validation_period": None, "batches_per_step": None, "searcher": searcher | nulls}
    assert parse_config(document).searcher == parse_config({**document, "searcher": searcher}).searcher
    assert steps_warning(document) == []


@pytest.mark.parametrize("field", ["max_steps", "target_trial_steps"])
def test_a_search_of_any_name_may_count_in_steps(field: str) -> None:
    searcher = {"name": "async_halving", "metric": "loss", "max_trials": 8, "num_rungs": 2, field: 3}
    config = parse_config({**OLD, "searcher": searcher})
    assert isinstance(config.searcher, AsyncHalvingSearcher)
    assert config.searcher.max_length == Length(300, "batches")


@pytest.mark.parametrize(
    ("searcher", "meant"),
    [
        (
            {"name": "adaptive", "target_trial_steps": 2, "step_budget": 80, "mode": "standard"},
            "{name: adaptive_asha, metric: loss, max_length: {batches: 200}, max_trials: 40, mode: standard}",
        ),
        (
            {"name": "sync_halving", "num_rungs": 3, "max_length": {"epochs": 2}, "budget": {"epochs": 10}},
            "{name: adaptive_asha, metric: loss, max_length: {epochs: 2}, max_trials: 5}",
        ),
        (
            {"name": "pbt", "population_size": 4, "num_rounds": 3, "steps_per_round": 2},
            "{name: adaptive_asha, metric: loss, max_length: {batches: 600}, max_trials: 4}",
        ),
        (
            {"name": "pbt", "population_size": "x", "divisor": 3, "budget": 7},
            "{name: adaptive_asha, metric: loss, max_length: {batches: 1000}, max_trials: 16, divisor: 3}",
        ),
    ],
)
def test_a_search_that_was_removed_is_refused_with_the_config_that_was_meant(
    searcher: dict[str, Any], meant: str
) -> None:
    document = {**OLD, "min_validation_period": None}
    with pytest.raises(ConfigError) as refused:
        parse_config({**document, "searcher": {"metric": "loss", **searcher}})
    assert f"searcher.name: {searcher['name']} was removed, use adaptive_asha, such as {meant}" in str(
        refused.value
    )
    written = yaml.safe_load(meant)
    assert parse_config({**document, "searcher": written}).searcher.name == "adaptive_asha"


def test_a_config_that_does_not_count_in_steps_stays_as_it_is() -> None:
    in_batches = {"name": "single", "max_length": {"batches": 1000}}
    assert steps_warning({"searcher": in_batches, "min_validation_period": 1}) == []
    assert steps_warning({"batches_per_step": "x", "searcher": {"max_steps": 10}}) == []
    assert steps_warning({"searcher": ["x"]}) == []
