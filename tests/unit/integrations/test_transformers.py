"""Hugging Face's real Trainer off cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.training.transformers_models import STEPS, Counting, arguments, make_trainer
from support.training.trials import Recorder, newest_checkpoint, notebook_info, same, weights_of
from transformers import Trainer

from resolute import core
from resolute.testing import simulate_preemption
from resolute.transformers import ResoluteCallback

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch")


@pytest.fixture
def context(tmp_path: Path) -> Iterator[core.Context]:
    with core.init(checkpoint_storage=str(tmp_path / "checkpoints")) as made:
        yield made


def train(context: core.Context, output: Path, **options: Any) -> tuple[Trainer, Recorder]:
    context.train._reporter = recorder = Recorder()
    own = {name: options.pop(name) for name in ("filter_metrics", "user_data") if name in options}
    args = arguments(output, **options)
    trainer = make_trainer(args, ResoluteCallback(context, args, **own))
    trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)
    return trainer, recorder


def test_what_is_logged_is_reported_once_for_each_step(context: core.Context, tmp_path: Path) -> None:
    _, recorder = train(context, tmp_path / "out")
    training, validation = recorder.of("training"), recorder.of("validation")
    assert [steps for steps, _ in training] == list(range(1, 3 * STEPS + 1))
    assert {"loss", "learning_rate", "epoch"} <= set(training[0][1])
    assert [steps for steps, _ in validation] == [STEPS, 2 * STEPS, 3 * STEPS]
    assert validation[-1][1]["eval_loss"] < validation[0][1]["eval_loss"]
    assert not any("train_runtime" in metrics for _, metrics in training)


def test_a_training_in_a_notebook_of_a_cluster_keeps_its_checkpoints(
    context: core.Context, tmp_path: Path
) -> None:
    context.info = notebook_info()
    train(context, tmp_path / "out", num_train_epochs=1, save_strategy="epoch")
    (metadata,) = (tmp_path / "checkpoints").glob("*/metadata.json")
    assert json.loads(metadata.read_text())["steps_completed"] == STEPS


def test_an_evaluation_after_training_is_not_reported_again(context: core.Context, tmp_path: Path) -> None:
    trainer, recorder = train(context, tmp_path / "out", num_train_epochs=1)
    trainer.evaluate()
    trainer.predict(Counting())
    assert [steps for steps, _ in recorder.of("validation")] == [STEPS]
    assert "test_loss" not in recorder.of("validation")[0][1]


def test_only_wanted_metrics_are_reported(context: core.Context, tmp_path: Path) -> None:
    _, recorder = train(context, tmp_path / "out", num_train_epochs=1, filter_metrics=["loss"])
    assert set(recorder.of("training")[0][1]) == {"loss"}
    assert set(recorder.of("validation")[0][1]) == {"eval_loss"}


def test_what_the_trainer_saves_becomes_a_checkpoint(context: core.Context, tmp_path: Path) -> None:
    train(context, tmp_path / "out", save_strategy="epoch", user_data={"vocabulary": 16})
    (tmp_path / "out" / "notes.txt").write_text("stays")
    newest = tmp_path / "checkpoints" / newest_checkpoint(tmp_path / "checkpoints")
    assert json.loads((newest / "metadata.json").read_text())["steps_completed"] == 3 * STEPS
    directory = newest / f"checkpoint-{3 * STEPS}"
    assert {"model.safetensors", "optimizer.pt", "trainer_state.json"} <= {
        p.name for p in directory.iterdir()
    }
    assert json.loads((directory / "my_data.json").read_text()) == {"vocabulary": 16}
    assert {path.name for path in newest.iterdir()} == {"metadata.json", directory.name}


# In the middle of an epoch, and at its end.
@pytest.mark.sampled(1)
@pytest.mark.parametrize(("checks", "stopped"), [(2, 3), (4, 5), (6, 7)])
def test_a_preempted_training_goes_on_exactly_where_it_stopped(
    tmp_path: Path, checks: int, stopped: int
) -> None:
    with core.init(checkpoint_storage=str(tmp_path / "straight")) as context:
        straight, _ = train(context, tmp_path / "a")
    storage = tmp_path / "resumed"
    with (
        simulate_preemption(after_checks=checks) as signal,
        core.init(checkpoint_storage=str(storage)) as context,
    ):
        first, _ = train(context, tmp_path / "b")
    assert signal.acknowledged
    assert first.state.global_step == stopped
    with core.init(checkpoint_storage=str(storage)) as context:
        context.train._reporter = recorder = Recorder()
        args = arguments(tmp_path / "c")
        context.checkpoint.download(newest_checkpoint(storage), tmp_path / "c")
        second = make_trainer(args, ResoluteCallback(context, args))
        second.train(resume_from_checkpoint=str(tmp_path / "c" / f"checkpoint-{stopped}"))
    assert recorder.of("training")[0][0] == stopped + 1
    assert second.state.global_step == straight.state.global_step == 3 * STEPS
    assert same(weights_of(second.model), weights_of(straight.model))
