"""LightningModules as PyTorchTrials, by our trainer and Lightning of today."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from support.training.trials import local_context, newest_checkpoint

from resolute.pytorch import Batch, DataLoader, Epoch, Trainer
from resolute.pytorch.lightning import LightningAdapter
from resolute.trial_errors import InvalidModelException

pytestmark = pytest.mark.filterwarnings(
    "ignore:LightningAdapter is for trials of older releases:FutureWarning"
)


class Module(pl.LightningModule):
    """Counts what is called."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layer = torch.nn.Linear(1, 1)
        self.calls: list[str] = []

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.log("step", batch_idx)
        self.calls.append(f"train {self.global_step} {self.trainer.current_epoch}")
        loss = self.layer(batch).pow(2).mean()
        return {"loss": loss, "twice": 2 * loss}

    def validation_step(self, batch: Any, batch_idx: int) -> Any:
        return {"val_loss": self.layer(batch).pow(2).mean()}

    def on_train_epoch_start(self) -> None:
        self.calls.append("epoch")

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.calls.append(f"batch {batch_idx}")

    def on_validation_epoch_end(self) -> None:
        self.calls.append("validated")

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["calls"] = list(self.calls)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.calls = [*checkpoint["calls"], "loaded"]

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
        return [optimizer], [{"scheduler": scheduler, "interval": "step", "frequency": 2}]


class Adapted(LightningAdapter):
    def __init__(self, context: Any, module: Any, **options: Any) -> None:
        super().__init__(context, module, **options)

    def build_training_data_loader(self) -> DataLoader:
        data: Any = torch.ones(4, 1)
        return DataLoader(data, batch_size=2)

    build_validation_data_loader = build_training_data_loader


def test_a_module_trains_validates_and_goes_on(tmp_path: Path) -> None:
    context, recorder = local_context(tmp_path)
    module = Module()
    Trainer(Adapted(context, module), context).fit(max_length=Epoch(1), reporting_period=Batch(1))
    assert module.calls == ["epoch", "train 0 0", "batch 0", "train 1 0", "batch 1", "validated"]
    reports = [metrics for _, metrics in recorder.of("training")]
    assert reports[0]["twice"] == pytest.approx(2 * reports[0]["loss"])
    assert reports[1]["loss"] < reports[0]["loss"]
    assert context.lr_schedulers[0].get_last_lr() == [0.05]
    assert "val_loss" in recorder.of("validation")[-1][1]
    context, _ = local_context(tmp_path)
    module = Module()
    trainer = Trainer(Adapted(context, module), context)
    trainer.fit(max_length=Batch(3), latest_checkpoint=newest_checkpoint(tmp_path))
    assert module.calls[6:] == ["loaded", "epoch", "train 2 1", "batch 2", "validated"]


def test_several_optimizers_take_turns(tmp_path: Path) -> None:
    class Two(Module):
        def training_step(self, batch: Any, batch_idx: int, optimizer_idx: int = 0) -> Any:
            return None if optimizer_idx == 2 else self.layer(batch).pow(2).mean()

        def configure_optimizers(self) -> Any:
            return [{"optimizer": torch.optim.SGD(self.parameters(), lr=0.1)} for _ in range(3)]

    context, recorder = local_context(tmp_path)
    Trainer(Adapted(context, Two()), context).fit(max_length=Batch(1))
    assert recorder.of("training")[-1][1].keys() == {"loss", "opt1_loss"}


def _manual(module: Any) -> None:
    module.automatic_optimization = False


def _logging(module: Any) -> None:
    def step(batch: Any, batch_idx: int) -> None:
        module.log("x", batch_idx, on_step=True)

    module.training_step = step


def _set_up(self: Any, stage: str) -> None:
    """Nobody would call it."""


def _of_several_loaders(self: Any, batch: Any, batch_idx: int, dataloader_idx: int) -> None:
    """Nobody would say which."""


def _no_optimizer(self: Any) -> None:
    """What Lightning takes for a module that is not trained."""


@pytest.mark.parametrize(
    ("methods", "change", "text"),
    [
        ({"setup": _set_up}, None, "overrides setup"),
        ({"validation_step": _of_several_loaders}, None, "takes dataloader_idx"),
        ({}, _manual, "optimizes manually"),
        ({}, _logging, "not on_step"),
        ({"configure_optimizers": _no_optimizer}, None, "returns no optimizer"),
    ],
)
def test_what_only_lightnings_own_trainer_does_is_refused(
    tmp_path: Path, methods: dict[str, Any], change: Any, text: str
) -> None:
    context, _ = local_context(tmp_path)
    module = type("Other", (Module,), methods)()
    if change is not None:
        change(module)
    with pytest.raises(InvalidModelException, match=text):
        Trainer(Adapted(context, module), context).fit(max_length=Batch(1))


def test_options_of_precision_are_checked(tmp_path: Path) -> None:
    context, _ = local_context(tmp_path)
    with pytest.raises(ValueError, match="precision is 64"):
        Adapted(context, Module(), precision=64)
    with pytest.raises(ValueError, match="amp_backend is 'cuda'"):
        Adapted(context, Module(), precision=16, amp_backend="cuda")
