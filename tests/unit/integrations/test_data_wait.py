"""A planted stall of 38 % of the time is reported as that by the callback of each library."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import lightning.pytorch as pl
import pytest
import torch
from accelerate import Accelerator
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
STALL = 0.15
"""Seconds: long beside what a busy machine adds."""
_NEVER = threading.Event()


class Stalling(Dataset[Any]):
    """Records that take their time, as the disk of a busy machine does."""

    def __init__(self, record: Callable[[int], Any]) -> None:
        self._record = record
        self.began = 0.0
        self.stalled = 0.0

    def __len__(self) -> int:
        return BATCHES * BATCH

    def __getitem__(self, index: int) -> Any:
        return self._record(index)

    def __getitems__(self, indices: list[int]) -> list[Any]:
        began = time.monotonic()
        self.began = self.began or began
        _NEVER.wait(STALL)
        batch = [self._record(index) for index in indices]
        self.stalled += time.monotonic() - began
        return batch


class Timed(Recorder):
    """Notes when throughput was reported."""

    reported_at = 0.0

    def report(self, group: str, steps: int, metrics: Any) -> None:
        super().report(group, steps, metrics)
        if group == "throughput":
            self.reported_at = time.monotonic()


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[core.Context]:
    begin = Throughput.__init__

    def begin_in_a_trial(self: Any, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        self._reports = True

    monkeypatch.setattr(Throughput, "__init__", begin_in_a_trial)
    with core.init(checkpoint_storage=str(tmp_path / "checkpoints")) as made:
        made.train._reporter = Timed()
        yield made


def check(context: core.Context, data: Stalling, *, samples: bool = True) -> None:
    """The share that was reported is that of the time which passed, whatever a busy machine adds to it."""
    recorder = context.train._reporter
    assert isinstance(recorder, Timed)
    ((steps, metrics),) = recorder.of("throughput")
    share = data.stalled / (recorder.reported_at - data.began)
    assert steps == BATCHES
    assert metrics["data_wait"] == pytest.approx(share, abs=0.03)
    assert 0.1 < share <= 0.4, "the stall was planted"
    assert metrics["batches_per_second"] < 1 / STALL
    if samples:
        assert metrics["samples_per_second"] == pytest.approx(BATCH * metrics["batches_per_second"])


def train() -> None:
    _NEVER.wait(STALL * 62 / 38)


def pair(index: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.tensor([float(index), 1.0]) / 16
    return x, x.sum(dim=0, keepdim=True)


def test_of_lightning_also_where_other_callbacks_take_their_time(context: core.Context) -> None:
    class Slow(Line):
        def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
            train()
            return super().training_step(batch, batch_idx)

    data = Stalling(pair)
    callback = resolute.lightning.ResoluteCallback(context, save_validated=False)
    quiet: dict[str, Any] = dict.fromkeys(("logger", "enable_progress_bar", "enable_model_summary"), False)
    trainer = pl.Trainer(
        max_epochs=1, accelerator="cpu", devices=1, callbacks=[callback], log_every_n_steps=BATCHES, **quiet
    )
    trainer.fit(Slow(), DataLoader(data, batch_size=BATCH))
    check(context, data)
    assert not isinstance(trainer.profiler, resolute.lightning.data_wait.DataWaitProfiler)  # type: ignore[attr-defined]


def test_of_transformers(context: core.Context, tmp_path: Path) -> None:
    class Slow(Trainer):  # type: ignore[misc, unused-ignore]
        def training_step(self, *args: Any, **options: Any) -> Any:
            train()
            return super().training_step(*args, **options)

    data = Stalling(Counting().__getitem__)
    options: dict[str, Any] = {"eval_strategy": "no", "num_train_epochs": 1, "logging_steps": BATCHES}
    args = arguments(tmp_path / "out", **options)
    callback = resolute.transformers.ResoluteCallback(context, args)
    Slow(model=make_model(), args=args, train_dataset=data, callbacks=[callback]).train()
    check(context, data)


def test_of_keras(context: core.Context) -> None:
    data = Stalling(pair)

    def loss(expected: Any, predicted: Any) -> Any:
        train()
        return keras.ops.mean((expected - predicted) ** 2)

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss=loss)
    callback = resolute.keras.ResoluteCallback(context, train_metrics_report_period=BATCHES)
    model.fit(DataLoader(data, batch_size=BATCH), epochs=1, callbacks=[callback], verbose=0)
    check(context, data, samples=False)


def test_of_accelerate(context: core.Context) -> None:
    data, tracker = Stalling(pair), ResoluteTracker(context)
    accelerator = Accelerator(cpu=True, log_with=tracker)
    accelerator.init_trackers("any name")
    loader = ResumableLoader(accelerator.prepare(DataLoader(data, batch_size=BATCH)), tracker)
    for _ in loader:
        train()
    accelerator.log({"loss": 0.5}, step=BATCHES)
    check(context, data)
    accelerator.end_training()
