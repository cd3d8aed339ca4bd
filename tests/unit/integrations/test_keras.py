"""Keras's real ``fit`` with the callback, off cluster, on the torch backend."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import keras
import pytest
from support.training.keras_models import BATCH, BATCHES, data, line, run, same, weights
from support.training.trials import newest_checkpoint, notebook_info

from resolute import core
from resolute.keras import ResoluteCallback, TensorBoard, random_state
from resolute.testing import simulate_preemption
from resolute.trial_errors import InvalidCheckpointException

# Keras gives its arrays of torch to h5py, which asks for them in NumPy's newer way.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept:DeprecationWarning")


def saved_steps(directory: Path) -> list[int]:
    return sorted(
        json.loads(path.read_text())["steps_completed"] for path in directory.glob("*/metadata.json")
    )


def test_metrics_are_reported_after_each_epoch(tmp_path: Path) -> None:
    _, recorder = run(tmp_path, epochs=2)
    training, validation = recorder.of("training"), recorder.of("validation")
    assert [steps for steps, _ in training] == [steps for steps, _ in validation] == [BATCHES, 2 * BATCHES]
    assert [(metrics["epochs"], metrics["batches"]) for _, metrics in training] == [(1, 5), (2, 10)]
    assert all(metrics.keys() == {"epochs", "batches", "loss", "mae"} for _, metrics in training + validation)


def test_training_metrics_can_be_reported_after_batches(tmp_path: Path) -> None:
    _, recorder = run(tmp_path, epochs=2, train_metrics_report_period=3)
    assert [steps for steps, _ in recorder.of("training")] == [3, 6, 9]


@pytest.mark.parametrize(
    ("every", "steps"), [(1, [5, 10, 15]), (2, [10, 15]), (0, [15])], ids=["each", "second", "end"]
)
def test_checkpoints_follow_epochs_and_the_end(tmp_path: Path, every: int, steps: list[int]) -> None:
    run(tmp_path, epochs=3, checkpoint_epochs=every)
    assert saved_steps(tmp_path) == steps


def test_a_preempted_training_continues_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    straight, all_reports = run(tmp_path / "straight", train_metrics_report_period=3)
    resumed = tmp_path / "resumed"
    with simulate_preemption(after_checks=1) as signal:
        _, before = run(resumed, train_metrics_report_period=3)
    assert signal.acknowledged
    assert saved_steps(resumed)[-1] == 2 * BATCHES
    again, after = run(resumed, newest_checkpoint(resumed), train_metrics_report_period=3)
    assert same(weights(again), weights(straight))
    assert before.reports + after.reports == all_reports.reports


def test_keeping_random_numbers_takes_none_of_pythons() -> None:
    model = line()  # seeds all generators, so that Keras has none of its own yet
    before = random.getstate()
    kept = random_state.capture(model)
    assert random.getstate() == before
    keras.utils.set_random_seed(1)
    random_state.restore(model, kept)
    assert random.getstate() == before


def test_a_finished_training_has_nothing_left_to_do(tmp_path: Path) -> None:
    done, _ = run(tmp_path, epochs=2)
    again, recorder = run(tmp_path, newest_checkpoint(tmp_path), epochs=2)
    assert same(weights(again), weights(done))
    assert recorder.reports == []


def test_another_training_takes_the_weights_and_begins_anew(tmp_path: Path) -> None:
    run(tmp_path, epochs=2)
    _, recorder = run(tmp_path, newest_checkpoint(tmp_path), epochs=1, continue_id=2)
    assert [steps for steps, _ in recorder.of("training")] == [BATCHES]


def test_a_second_evaluation_of_the_same_batch_is_not_reported(tmp_path: Path) -> None:
    with core.init(checkpoint_storage=str(tmp_path)) as context:
        from support.training.trials import Recorder

        context.train._reporter = recorder = Recorder()
        model, (x, y) = line(), data()
        callback = ResoluteCallback(context, None, 1)
        for _ in range(2):
            model.evaluate(x, y, batch_size=BATCH, callbacks=[callback], verbose=0)
    assert len(recorder.of("validation")) == 1


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    run(tmp_path, epochs=1)
    wide = keras.Sequential([keras.Input((4,)), keras.layers.Dense(9), keras.layers.Dense(1)])
    wide.compile(optimizer="sgd", loss="mse")
    with core.init(checkpoint_storage=str(tmp_path)) as context:
        callback = ResoluteCallback(context, newest_checkpoint(tmp_path), 1)
        with pytest.raises(InvalidCheckpointException, match="does not fit the model"):
            wide.fit(*data(), callbacks=[callback], verbose=0)


def test_several_workers_are_refused_with_what_to_do(tmp_path: Path) -> None:
    with core.init(checkpoint_storage=str(tmp_path)) as context:
        callback = ResoluteCallback(context, None, 1)
        callback._core = type("Two", (), {"distributed": type("Ranks", (), {"size": 2})})()
        with pytest.raises(ValueError, match=r"torch backend does not train .* 2\): use tf_keras"):
            line().fit(*data(), callbacks=[callback], verbose=0)


@pytest.mark.parametrize(
    "options", [{"train_metrics_report_period": 0}, {"checkpoint_epochs": -1}], ids=["period", "epochs"]
)
def test_periods_are_checked(tmp_path: Path, options: Any) -> None:
    with core.init(checkpoint_storage=str(tmp_path)) as context:
        name = next(iter(options))
        with pytest.raises(ValueError, match=f"{name} is"):
            ResoluteCallback(context, None, 1, **options)


def test_progress_is_written_each_tenth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, epochs=1, verbose=2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "total batches trained: 0, epoch 0% complete (0/5)"
    assert lines[5].startswith("total batches trained: 5, epoch 100% complete (5/5): loss=")


def test_a_training_in_a_notebook_of_a_cluster_is_one_off_cluster(tmp_path: Path) -> None:
    with core.init(checkpoint_storage=str(tmp_path)) as context:
        context.info = notebook_info()
        callback = ResoluteCallback(context)
    assert (callback._checkpoint, callback._continue_id) == (None, "local")


def test_tensorboard_keeps_its_directory_off_cluster(tmp_path: Path) -> None:
    with core.init(checkpoint_storage=str(tmp_path)) as context:
        callback = TensorBoard(context, log_dir=str(tmp_path / "events"))
    assert Path(callback.log_dir) == tmp_path / "events"
