"""Lengths in steps, as Determined 0.12 counted them."""

from __future__ import annotations

from typing import Any

import pytest

from resolute_experiments.config.loading.parse import parse_config
from resolute_experiments.config.loading.steps import steps_warning
from resolute_experiments.config.sections.length import Length
from resolute_experiments.config.sections.searcher import SingleSearcher

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


def test_a_config_that_does_not_count_in_steps_stays_as_it_is() -> None:
    in_batches = {"name": "single", "max_length": {"batches": 1000}}
    assert steps_warning({"searcher": in_batches, "min_validation_period": 1}) == []
    assert steps_warning({"batches_per_step": "x", "searcher": {"max_steps": 10}}) == []
    assert steps_warning({"searcher": ["x"]}) == []
