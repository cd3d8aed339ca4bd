"""What the searcher is told of a config's search."""

from __future__ import annotations

from typing import Any

import pytest

from resolute_config.loading.parse import parse_config
from resolute_experiments.specs.search import search_spec, works_by_operations
from resolute_searcher.planning.preview import preview
from resolute_searcher.spec.search import CustomSpec, ModelSpec, PluginSpec
from resolute_searcher.wire.spec import spec_from


def document(searcher: dict[str, Any]) -> dict[str, Any]:
    config = parse_config(
        {
            "name": "any",
            "entrypoint": "any",
            "searcher": {"metric": "loss", **searcher},
            "hyperparameters": {"x": {"type": "double", "minval": 0, "maxval": 1}},
            "reproducibility": {"experiment_seed": 3},
            "checkpoint_storage": {"type": "directory", "container_path": "/any"},
        }
    )
    return config.model_dump(mode="json")


@pytest.mark.parametrize(
    ("searcher", "expected"),
    [
        (
            {
                "name": "optuna",
                "sampler": "cmaes",
                "sampler_settings": {"popsize": 8},
                "max_trials": 20,
                "max_length": {"epochs": 9},
                "num_rungs": 2,
                "divisor": 3,
                "max_concurrent_trials": 5,
            },
            ModelSpec(
                max_length=9,
                max_trials=20,
                sampler="cmaes",
                settings={"popsize": 8},
                max_concurrent_trials=5,
                num_rungs=2,
                divisor=3,
            ),
        ),
        ({"name": "custom", "unit": "batches", "anything": 1}, CustomSpec()),
        ({"name": "plugin", "method": "mine", "settings": {"a": 1}}, PluginSpec("mine", {"a": 1})),
    ],
    ids=["optuna", "custom", "plugin"],
)
def test_searches_by_others_reach_the_searcher_whole(searcher: dict[str, Any], expected: object) -> None:
    config = document(searcher)
    spec = spec_from(search_spec(config))
    assert spec.method == expected
    assert works_by_operations(config)
    if isinstance(spec.method, ModelSpec):
        assert [bracket.endings for bracket in preview(spec).brackets] == [((3, 14), (9, 6))]


@pytest.mark.parametrize("searcher", [{"name": "single"}, {"name": "random", "max_trials": 2}], ids=str)
def test_a_length_of_zero_lets_trials_end_by_themselves(searcher: dict[str, Any]) -> None:
    zero, without = (document({**searcher, **length}) for length in ({"max_length": 0}, {}))
    assert zero["searcher"]["max_length"] == 0
    assert spec_from(search_spec(zero)) == spec_from(search_spec(without))
    assert not works_by_operations(zero)
