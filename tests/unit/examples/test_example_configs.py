"""The configs of the examples are complete, set nothing in vain, and name scripts that exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from resolute_config.ineffective_fields import ineffective_fields
from resolute_config.layer import Layer
from resolute_config.loading.parse import parse_config

EXAMPLES = Path(__file__).parents[3] / "examples"
CONFIGS = sorted(EXAMPLES.rglob("*.yaml"))
CLUSTER = Layer("cluster", {"checkpoint_storage": {"type": "shared_fs", "host_path": "/checkpoints"}})


def name(path: Path) -> str:
    return str(path.relative_to(EXAMPLES))


@pytest.mark.parametrize("path", CONFIGS, ids=name)
def test_every_example_is_accepted_without_a_warning(path: Path) -> None:
    config = parse_config(path.read_text(), layers=[CLUSTER])
    assert [warning.path for warning in ineffective_fields(config)] == []


@pytest.mark.parametrize("path", CONFIGS, ids=name)
def test_every_example_runs_a_script_that_lies_beside_its_config(path: Path) -> None:
    entrypoint = parse_config(path.read_text(), layers=[CLUSTER]).entrypoint
    assert isinstance(entrypoint, str)
    words = [word for word in entrypoint.split() if word.endswith(".py") or ":" in word]
    script = words[0]
    module, is_trial_class, _ = script.partition(":")
    assert (path.parent / (f"{module}.py" if is_trial_class else script)).is_file()


def test_the_demo_searches_at_least_sixteen_trials_adaptively() -> None:
    config = parse_config((EXAMPLES / "digits" / "adaptive.yaml").read_text(), layers=[CLUSTER])
    assert config.searcher.name == "adaptive_asha"
    assert config.searcher.max_trials >= 16
    assert config.reproducibility.experiment_seed == 1797
