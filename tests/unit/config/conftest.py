"""A small good config, and ways to change one thing in it."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pytest

from resolute.contracts.documents.faults import ConfigError
from resolute_config.experiment import ExperimentConfig
from resolute_config.layer import Layer
from resolute_config.loading.parse import parse_config

Accept: TypeAlias = Callable[..., ExperimentConfig]
Refuse: TypeAlias = Callable[..., list[str]]

GOOD: Mapping[str, Any] = {
    "name": "digits",
    "entrypoint": "python3 train.py",
    "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 100}},
    "checkpoint_storage": {"type": "shared_fs", "host_path": "/data"},
    "reproducibility": {"experiment_seed": 7},
}


def with_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The good config with some top-level fields replaced; an ellipsis leaves a field out."""
    return {key: value for key, value in {**GOOD, **changes}.items() if value is not ...}


@pytest.fixture
def good() -> dict[str, Any]:
    return dict(GOOD)


@pytest.fixture
def accept() -> Accept:
    """Parse the good config with the given top-level fields changed."""

    def parse(*, layers: tuple[Layer, ...] = (), **changes: Any) -> ExperimentConfig:
        return parse_config(with_changes(changes), layers=layers)

    return parse


@pytest.fixture
def refuse() -> Refuse:
    """Parse the good config with the given top-level fields changed, and return the faults as text."""

    def parse(*, layers: tuple[Layer, ...] = (), **changes: Any) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            parse_config(with_changes(changes), layers=layers)
        return [str(fault) for fault in caught.value.faults]

    return parse
