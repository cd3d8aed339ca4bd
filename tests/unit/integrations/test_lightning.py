"""Lightning's real Trainer off cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.training.lightning_modules import BATCHES, Line, loader, trainer
from support.training.trials import Recorder, newest_checkpoint, notebook_info, same, weights_of

from resolute import core
from resolute.lightning import ResoluteCallback, ResoluteLogger
from resolute.pytorch.lightning import library
from resolute.testing import simulate_preemption

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:lightning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:lightning"),
]


@pytest.fixture
def context(tmp_path: Path) -> Iterator[core.Context]:
    with core.init(checkpoint_storage=str(tmp_path)) as made:
        yield made


def fit(context: core.Context, *, latest: str | None = None, **options: Any) -> tuple[Line, Recorder]:
    context.train._reporter = recorder = Recorder()
    module, callback = Line(), ResoluteCallback(context, latest_checkpoint=latest)
    options.setdefault("max_epochs", 3)
    running = trainer(callback, logger=ResoluteLogger(callback), **options)
    running.fit(module, loader(), loader(), ckpt_path=callback.checkpoint_path)
    return module, recorder


def saved_steps(directory: Path) -> list[int]:
    return sorted(
        json.loads(path.read_text())["steps_completed"] for path in directory.glob("*/metadata.json")
    )


def test_metrics_count_batches_and_validations_are_their_own_group(context: core.Context) -> None:
    _, recorder = fit(context)
    training, validation = recorder.of("training"), recorder.of("validation")
    assert [steps for steps, metrics in training if "loss" in metrics] == list(range(1, 3 * BATCHES + 1))
    assert [steps for steps, _ in validation] == [BATCHES, 2 * BATCHES, 3 * BATCHES]
    assert all("val_loss" in metrics and "loss" not in metrics for _, metrics in validation)
    assert validation[-1][1]["val_loss"] < validation[0][1]["val_loss"]


def test_every_validation_is_followed_by_a_checkpoint(context: core.Context, tmp_path: Path) -> None:
    fit(context)
    assert saved_steps(tmp_path) == [BATCHES, 2 * BATCHES, 3 * BATCHES]


def test_without_validations_the_ends_of_epochs_are(context: core.Context, tmp_path: Path) -> None:
    fit(context, limit_val_batches=0)
    assert saved_steps(tmp_path) == [BATCHES, 2 * BATCHES, 3 * BATCHES]


# In the middle of an epoch, and at its end, where the trainer's own validation comes first.
@pytest.mark.sampled(1)
@pytest.mark.parametrize(("checks", "stopped"), [(2, 3), (4, 5), (6, 7)])
def test_a_preempted_training_goes_on_where_it_stopped(tmp_path: Path, checks: int, stopped: int) -> None:
    with core.init(checkpoint_storage=str(tmp_path / "straight")) as context:
        straight, _ = fit(context)
    resumed = tmp_path / "resumed"
    with (
        simulate_preemption(after_checks=checks) as signal,
        core.init(checkpoint_storage=str(resumed)) as context,
    ):
        first, _ = fit(context)
    assert signal.acknowledged
    assert (first.trained, saved_steps(resumed)[-1]) == (stopped, stopped)
    with core.init(checkpoint_storage=str(resumed)) as context:
        second, recorder = fit(context, latest=newest_checkpoint(resumed))
    assert stopped + second.trained == straight.trained == 3 * BATCHES
    assert next(steps for steps, metrics in recorder.of("training") if "loss" in metrics) == stopped + 1
    if stopped % BATCHES == 0:  # Lightning reads an epoch that it continues in from its first batch again
        assert same(weights_of(second), weights_of(straight))


def test_with_accumulated_gradients_it_stops_after_a_batch_that_steps(tmp_path: Path) -> None:
    with simulate_preemption(after_checks=1), core.init(checkpoint_storage=str(tmp_path)) as context:
        module, recorder = fit(context, accumulate_grad_batches=2)
    assert module.trained == 4
    assert [steps for steps, metrics in recorder.of("training") if "loss" in metrics] == [2, 4]


def test_a_checkpoint_holds_what_lightning_itself_saves(context: core.Context, tmp_path: Path) -> None:
    module, _ = fit(context)
    path = tmp_path / newest_checkpoint(tmp_path) / "lightning.ckpt"
    loaded = Line.load_from_checkpoint(path, weights_only=False)
    assert same(weights_of(loaded), weights_of(module))


def test_a_training_in_a_notebook_of_a_cluster_is_one_off_cluster(context: core.Context) -> None:
    context.info = notebook_info()
    assert ResoluteLogger(ResoluteCallback(context)).version == "0"


def test_a_test_is_reported_as_one(context: core.Context) -> None:
    context.train._reporter = recorder = Recorder()
    callback = ResoluteCallback(context)
    trainer(callback, logger=ResoluteLogger(callback)).test(Line(), loader(), verbose=False)
    assert [group for group, _, _ in recorder.reports] == ["test"]
    assert "test_loss" in recorder.reports[0][2]


@pytest.mark.sampled(1, group="processes with other libraries")
def test_it_works_with_the_older_name_of_the_library_too() -> None:
    script = """
import sys
import pytorch_lightning as pl
from resolute.lightning import ResoluteCallback, ResoluteLogger
assert issubclass(ResoluteCallback, pl.Callback)
assert issubclass(ResoluteLogger, pl.loggers.Logger)
assert "lightning.pytorch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_lightning_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "NAMES", ("a_library_that_nobody_has",))
    with pytest.raises(ImportError, match="pip install lightning"):
        library.find_library()
