"""Hugging Face's real Trainer as a trial of a real search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.training.transformers_models import STEPS, arguments, make_trainer
from support.training.trials import same, weights_of
from transformers import Trainer, TrainerCallback

from determined.pytorch import dsat
from determined.transformers import DetCallback
from resolute import core, info
from resolute.transformers import ResoluteCallback

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch")


class Renamed(ResoluteCallback):
    """The search's metric is called ``loss`` here, and shall be that of evaluations."""

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if logs and "eval_loss" in logs:
            logs = {**logs, "loss": logs["eval_loss"]}
        super().on_log(args, state, control, logs, **kwargs)


class Evaluations(TrainerCallback):  # type: ignore[misc, unused-ignore]
    """Notes after which steps there was one."""

    def __init__(self) -> None:
        self.steps: list[int] = []

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.steps.append(state.global_step)


def train(output: Path, *callbacks: Any, **options: Any) -> Trainer:
    with core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context:
        args = arguments(output, **options)
        trainer = make_trainer(args, Renamed(context, args), *callbacks)
        trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)
        context.train.flush(20)
    return trainer


def test_a_trainer_without_an_evaluation_completes_by_what_it_logs(start: Any, tmp_path: Path) -> None:
    with (
        start(max_length=12, rungs=2) as trial,
        core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context,
    ):
        args = arguments(tmp_path / "out", max_steps=12, eval_strategy="no")
        trainer = make_trainer(args, ResoluteCallback(context, args), evaluates=False)
        trainer.train()
        assert trial.flags.acknowledged
    assert trainer.state.global_step == 12
    saved = {path.name for path in (tmp_path / "checkpoints").glob("*/checkpoint-*")}
    assert saved == {"checkpoint-4", "checkpoint-12"}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("logging_steps", [1, 7])
def test_it_evaluates_where_the_search_says(start: Any, tmp_path: Path, logging_steps: int) -> None:
    evaluations = Evaluations()
    with start(max_length=12, rungs=2) as trial:
        options = {"max_steps": 12, "eval_strategy": "no", "logging_steps": logging_steps}
        trainer = train(tmp_path / "out", evaluations, **options)
        assert trial.flags.acknowledged
    assert trainer.state.global_step == 12
    assert evaluations.steps == [4, 12]
    saved = {path.name for path in (tmp_path / "checkpoints").glob("*/checkpoint-*")}
    assert saved == {"checkpoint-4", "checkpoint-12"}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("eval_strategy", ["no", "epoch", "steps"])
def test_it_follows_a_search_that_counts_in_epochs(start: Any, tmp_path: Path, eval_strategy: str) -> None:
    with start(max_length=3, unit="epochs", rungs=2) as trial:
        trainer = train(tmp_path / "out", eval_strategy=eval_strategy, eval_steps=STEPS)
        assert trial.flags.acknowledged
    assert trainer.state.global_step == 3 * STEPS
    saved = {path.name for path in (tmp_path / "checkpoints").glob("*/checkpoint-*")}
    assert {f"checkpoint-{STEPS}", f"checkpoint-{3 * STEPS}"} <= saved


class OlderScript(Renamed, DetCallback):
    """As scripts of older releases have it."""


def test_the_callback_of_older_scripts_tells_the_operation(start: Any, tmp_path: Path) -> None:
    with (
        start(max_length=12, rungs=2) as trial,
        core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context,
    ):
        args = arguments(tmp_path / "out", max_steps=12, eval_strategy="no")
        callback = OlderScript(context, args)
        operation = callback.current_op
        assert operation is not None
        assert operation.length == 4
        with dsat.dsat_reporting_context(context, op=operation):
            make_trainer(args, callback).train()
        assert callback.current_op is None
        assert trial.flags.acknowledged


def test_a_paused_trial_goes_on_from_its_latest_checkpoint(
    start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"max_steps": 12, "eval_strategy": "no"}
    with start(max_length=12) as trial:

        class Pause(TrainerCallback):  # type: ignore[misc, unused-ignore]
            def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
                if state.global_step == 6:
                    trial.flags.set_signal(revision=1, preempt=True)

        first = train(tmp_path / "first", Pause(), **options)
        assert first.state.global_step == 7
        trial.flags.set_signal(revision=2, preempt=False)
        (checkpoint,) = (path.parent.name for path in (tmp_path / "checkpoints").glob("*/checkpoint-7"))
        found = info.get_cluster_info()
        assert found is not None
        monkeypatch.setattr(found, "_latest_checkpoint", checkpoint)
        # What a killed run may have left behind where the next one works.
        (tmp_path / "second" / "checkpoint-11").mkdir(parents=True)
        second = train(tmp_path / "second", **options)
    args = arguments(tmp_path / "straight", **options)
    straight = make_trainer(args)
    straight.train()
    assert second.state.global_step == 12
    assert same(weights_of(second.model), weights_of(straight.model))


@pytest.mark.parametrize(
    ("unit", "options", "message"),
    [
        ("batches", {"max_steps": 11}, r"max_steps=11 do not match searcher config batches=12"),
        ("batches", {"num_train_epochs": 12}, r"num_train_epochs=12 do not match searcher config batches=12"),
        ("epochs", {"num_train_epochs": 2}, r"num_train_epochs=2 do not match searcher config epochs=12"),
        ("records", {"max_steps": 12}, "counts in records"),
    ],
)
def test_other_lengths_than_the_configs_are_refused(
    start: Any, tmp_path: Path, unit: str, options: Any, message: str
) -> None:
    with start(max_length=12, unit=unit), pytest.raises(ValueError, match=message):
        train(tmp_path / "out", **options)
