"""A planted stall of 38 % of the time is reported as that by the callback of each library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import lightning.pytorch as pl
import pytest
import torch
from accelerate import Accelerator
from support.clocks import ManualClock
from support.training.lightning_modules import Line
from support.training.transformers_models import Counting, arguments, make_model
from support.training.trials import Recorder
from torch.utils.data import DataLoader, Dataset
from transformers import Trainer

import resolute.keras
import resolute.lightning
import resolute.transformers
from resolute import core
from resolute.accelerate import ResoluteTracker, ResumableLoader
from resolute.trials.throughput import Throughput

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:lightning"),
    pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept:DeprecationWarning"),
]
BATCHES, BATCH = 4, 4
STALL, TRAINING = 3.8, 6.2
"""Seconds of a batch."""


class Stalling(Dataset[Any]):
    """Records that take their time, as those of a slow disk do."""

    def __init__(self, record: Callable[[int], Any], clock: ManualClock) -> None:
        self._record, self._clock = record, clock

    def __len__(self) -> int:
        return BATCHES * BATCH

    def __getitem__(self, index: int) -> Any:
        return self._record(index)

    def __getitems__(self, indices: list[int]) -> list[Any]:
        self._clock.advance(STALL)
        return [self._record(index) for index in indices]


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[core.Context]:
    begin = Throughput.__init__

    def begin_in_a_trial(self: Any, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        self._reports = True

    monkeypatch.setattr(Throughput, "__init__", begin_in_a_trial)
    with core.init(checkpoint_storage=str(tmp_path / "checkpoints")) as made:
        made.train._reporter = Recorder()
        yield made


def check(context: core.Context, *, samples: bool = True) -> None:
    """What was reported is what was planted."""
    recorder = context.train._reporter
    assert isinstance(recorder, Recorder)
    ((steps, metrics),) = recorder.of("throughput")
    assert steps == BATCHES
    assert metrics["data_wait"] == pytest.approx(0.38)
    assert metrics["batches_per_second"] == pytest.approx(0.1)
    assert metrics.get("samples_per_second") == (pytest.approx(BATCH * 0.1) if samples else None)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def pair(index: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.tensor([float(index), 1.0]) / 16
    return x, x.sum(dim=0, keepdim=True)


def test_of_lightning_also_where_other_callbacks_take_their_time(
    context: core.Context, clock: ManualClock, tmp_path: Path
) -> None:
    class Saving(pl.Callback):
        def on_train_batch_end(self, *_: Any) -> None:
            clock.advance(100.0)

    class Slow(Line):
        def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
            clock.advance(TRAINING)
            return super().training_step(batch, batch_idx)

    data = Stalling(pair, clock)
    callback = resolute.lightning.ResoluteCallback(context, save_validated=False)
    callback._clock = clock
    quiet: dict[str, Any] = dict.fromkeys(("logger", "enable_progress_bar", "enable_model_summary"), False)
    trainer = pl.Trainer(
        max_epochs=1,
        default_root_dir=tmp_path,
        accelerator="cpu",
        devices=1,
        callbacks=[callback, Saving()],
        log_every_n_steps=BATCHES,
        **quiet,
    )
    trainer.fit(Slow(), DataLoader(data, batch_size=BATCH))
    check(context)
    assert not isinstance(trainer.profiler, resolute.lightning.data_wait.DataWaitProfiler)  # type: ignore[attr-defined]


def test_of_transformers(context: core.Context, clock: ManualClock, tmp_path: Path) -> None:
    class Slow(Trainer):  # type: ignore[misc, unused-ignore]
        def training_step(self, *args: Any, **options: Any) -> Any:
            clock.advance(TRAINING)
            return super().training_step(*args, **options)

    data = Stalling(Counting().__getitem__, clock)
    options: dict[str, Any] = {"eval_strategy": "no", "num_train_epochs": 1, "logging_steps": BATCHES}
    args = arguments(tmp_path / "out", **options)
    callback = resolute.transformers.ResoluteCallback(context, args)
    callback._watch._clock = clock
    Slow(model=make_model(), args=args, train_dataset=data, callbacks=[callback]).train()
    check(context)


def test_of_keras(context: core.Context, clock: ManualClock) -> None:
    data = Stalling(pair, clock)

    def loss(expected: Any, predicted: Any) -> Any:
        clock.advance(TRAINING)
        return keras.ops.mean((expected - predicted) ** 2)

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss=loss)
    callback = resolute.keras.ResoluteCallback(context, train_metrics_report_period=BATCHES)
    callback._watch._clock = clock
    model.fit(DataLoader(data, batch_size=BATCH), epochs=1, callbacks=[callback], verbose=0)
    check(context, samples=False)


def test_of_accelerate(context: core.Context, clock: ManualClock) -> None:
    data, tracker = Stalling(pair, clock), ResoluteTracker(context)
    accelerator = Accelerator(cpu=True, log_with=tracker)
    accelerator.init_trackers("any name")
    loader = ResumableLoader(accelerator.prepare(DataLoader(data, batch_size=BATCH)), tracker)
    assert loader._watch is not None
    loader._watch._clock = clock
    for _ in loader:
        clock.advance(TRAINING)
    accelerator.log({"loss": 0.5}, step=BATCHES)
    check(context)
    accelerator.end_training()
