"""Trials of a search that reads its time from their reports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.training import lightning_modules, transformers_models
from support.training.trials import Recorder

from resolute import core
from resolute.lightning import ResoluteCallback, ResoluteLogger
from resolute.transformers import ResoluteCallback as TransformersCallback

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:lightning"),
    pytest.mark.filterwarnings("ignore::UserWarning:torch"),
    pytest.mark.filterwarnings("ignore::FutureWarning:lightning"),
]


def by_lightning(context: core.Context, output: Path) -> None:
    callback = ResoluteCallback(context)
    trainer = lightning_modules.trainer(callback, logger=ResoluteLogger(callback), max_epochs=2)
    loader = lightning_modules.loader
    trainer.fit(lightning_modules.Line(), loader(), loader())


def by_hugging_face(context: core.Context, output: Path) -> None:
    args = transformers_models.arguments(output, num_train_epochs=2)
    transformers_models.make_trainer(args, TransformersCallback(context, args)).train()


@pytest.mark.parametrize("train", [by_lightning, by_hugging_face])
def test_their_own_arguments_say_how_long_and_reports_when_they_were_made(
    start: Any, tmp_path: Path, train: Callable[..., None]
) -> None:
    recorder = Recorder()
    with (
        start(max_length=99, time_driven=True),
        core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context,
    ):
        context.train._reporter = recorder
        train(context, tmp_path / "out")
    times = [(metrics["batches"], metrics["epochs"]) for _, metrics in recorder.of("validation")]
    assert times == [(5, 1.0), (10, 2.0)]
    assert [steps for steps, _ in recorder.of("validation")] == [5, 10]
    assert all("batches" in metrics for _, metrics in recorder.of("training"))
