"""Trying a class by the calls of the first releases, under their names."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from support.training.trials import LineTrial

ROOT = Path(__file__).resolve().parents[4]
CONFIG = {
    "hyperparameters": {
        "global_batch_size": {"type": "const", "val": 8},
        "lr": {"type": "log", "base": 10, "minval": -4, "maxval": -2},
    },
    "searcher": {"name": "single", "metric": "validation_loss", "max_steps": 10},
}


@pytest.fixture
def experimental(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return importlib.import_module("determined.experimental")


def test_a_trial_is_made_with_drawn_or_given_hyperparameters(experimental: Any, tmp_path: Path) -> None:
    drawn = experimental.create_trial_instance(LineTrial, str(tmp_path), config=CONFIG).context
    assert 1e-4 <= drawn.get_hparam("lr") <= 1e-2
    given = {"global_batch_size": 4, "lr": 3.0}
    trial = experimental.create_trial_instance(LineTrial, str(tmp_path), CONFIG, given)
    assert trial.context.get_hparams() == given
    assert trial.context.get_per_slot_batch_size() == 4


@pytest.mark.parametrize("how", ["mode", "third", "local", "named"])
def test_one_batch_is_trained_off_cluster(experimental: Any, tmp_path: Path, how: str) -> None:
    if how == "mode":
        trial = experimental.create(LineTrial, CONFIG, mode=experimental.Mode.LOCAL)
    elif how == "third":
        trial = experimental.create(LineTrial, CONFIG, experimental.Mode.LOCAL)
    elif how == "named":
        trial = experimental.test_one_batch(LineTrial, CONFIG)
    else:
        trial = experimental.create(LineTrial, CONFIG, local=True, test=True, context_dir=".")
    assert trial.seen == [0]
    assert len(list(tmp_path.rglob("state_dict.pth"))) == 1


@pytest.mark.parametrize("options", [{}, {"local": True}, {"test": True}])
def test_more_than_a_test_is_refused_with_what_to_do(experimental: Any, options: dict[str, bool]) -> None:
    with pytest.raises(RuntimeError, match="entrypoint: MODULE:LineTrial"):
        experimental.create(LineTrial, CONFIG, **options)


@pytest.mark.parametrize(("name", "instead"), [("keras", "DeterminedCallback"), ("estimator", "Core API")])
def test_modules_of_the_first_releases_say_what_to_use(experimental: Any, name: str, instead: str) -> None:
    with pytest.raises(AttributeError, match=instead):
        getattr(experimental, name)
    with pytest.raises(ImportError, match=instead):
        importlib.import_module(f"determined.experimental.{name}")
