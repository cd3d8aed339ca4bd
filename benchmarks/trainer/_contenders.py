"""The same training by four loops: model, data, optimizer, order and number of steps are equal."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCH = 32
FEATURES = 32


class Stopwatch(nn.Module):
    """A network that notes when the first and some later forward passes begin.

    Args:
        marks: Numbers of the passes that are noted; to read the processor's clock at each takes too long.
        rounds: How often a pass computes the same again, to be slower.
    """

    def __init__(self, marks: Collection[int] = (0,), rounds: int = 1) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 10))
        self.passes = 0
        self.marks = marks
        self.rounds = rounds
        self.times: list[tuple[float, float]] = []

    def forward(self, x: torch.Tensor, labels: torch.Tensor | None = None) -> Any:
        if self.passes in self.marks:
            self.times.append((time.perf_counter(), time.process_time()))
        self.passes += 1
        if self.rounds > 1:
            with torch.no_grad():
                for _ in range(self.rounds):
                    self.layers(x)
        scores = self.layers(x)
        return scores if labels is None else {"loss": nn.functional.cross_entropy(scores, labels)}


def make_data(steps: int) -> TensorDataset:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(steps * BATCH, FEATURES, generator=generator)
    return TensorDataset(x, torch.randint(0, 10, (steps * BATCH,), generator=generator))


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.01)


def plain(model: Stopwatch, steps: int) -> None:
    optimizer = make_optimizer(model)
    loss_sum = 0.0
    model.train()
    for x, y in DataLoader(make_data(steps), batch_size=BATCH):
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
        loss_sum += loss.item()


def resolute(model: Stopwatch, steps: int) -> None:
    from resolute import core, pytorch
    from resolute.pytorch import PyTorchTrialContext

    class Trial(pytorch.PyTorchTrial):
        def __init__(self, context: PyTorchTrialContext) -> None:
            self.context = context
            self.model = context.wrap_model(model)
            self.optimizer = context.wrap_optimizer(make_optimizer(model))

        def build_training_data_loader(self) -> pytorch.DataLoader:
            return pytorch.DataLoader(make_data(steps), batch_size=BATCH)

        def build_validation_data_loader(self) -> pytorch.DataLoader:
            return pytorch.DataLoader(make_data(1), batch_size=BATCH)

        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
            x, y = batch
            loss = nn.functional.cross_entropy(self.model(x), y)
            self.context.backward(loss)
            self.context.step_optimizer(self.optimizer)
            return {"loss": loss}

        def evaluate_full_dataset(self, data_loader: Any) -> dict[str, Any]:
            return {"accuracy": 0.0}

    logging.getLogger("resolute").setLevel(logging.ERROR)
    assert core
    with tempfile.TemporaryDirectory() as home:
        os.environ["XDG_DATA_HOME"] = home
        with pytorch.init() as context:
            pytorch.Trainer(Trial(context), context).fit(
                max_length=pytorch.Batch(steps), checkpoint_policy="none"
            )


def lightning(model: Stopwatch, steps: int) -> None:
    import lightning.pytorch as pl

    class Module(pl.LightningModule):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
            x, y = batch
            return nn.functional.cross_entropy(self.model(x), y)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return make_optimizer(self.model)

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    trainer = pl.Trainer(
        max_steps=steps,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Module(), DataLoader(make_data(steps), batch_size=BATCH))


def hugging_face(model: Stopwatch, steps: int) -> None:
    from transformers import Trainer, TrainingArguments

    def collate(rows: list[Any]) -> dict[str, torch.Tensor]:
        return {"x": torch.stack([x for x, _ in rows]), "labels": torch.stack([y for _, y in rows])}

    with tempfile.TemporaryDirectory() as directory:
        arguments = TrainingArguments(
            output_dir=directory,
            max_steps=steps,
            per_device_train_batch_size=BATCH,
            logging_steps=100,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
            max_grad_norm=0.0,
        )
        trainer = Trainer(
            model=model,
            args=arguments,
            train_dataset=make_data(steps),
            data_collator=collate,
            optimizers=(make_optimizer(model), None),
        )
        trainer.train()


CONTENDERS: dict[str, Callable[[Stopwatch, int], None]] = {
    "plain": plain,
    "resolute": resolute,
    "lightning": lightning,
    "hugging_face": hugging_face,
}


def seconds_per_step(name: str, *, steps: int, warm: int, rounds: int = 1) -> tuple[float, float]:
    """Trains by one of the loops; mean time from one forward pass to the next, after the first ones.

    Returns:
        Seconds by the clock on the wall, and seconds of the processor: on a machine that others use too only
        the latter says much.
    """
    model = Stopwatch((warm, steps - 1), rounds)
    with Path(os.devnull).open("w") as nowhere, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(nowhere):
            CONTENDERS[name](model, steps)
    assert model.passes == steps, (name, model.passes)
    (wall, work), (last_wall, last_work) = model.times
    count = steps - 1 - warm
    return (last_wall - wall) / count, (last_work - work) / count
