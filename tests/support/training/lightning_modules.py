"""A module small enough to train in a test, for either name of Lightning."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader, TensorDataset

BATCHES = 5
"""Of an epoch."""


def loader() -> DataLoader[Any]:
    x = torch.arange(40.0).reshape(20, 2) / 40
    return DataLoader(TensorDataset(x, x.sum(dim=1, keepdim=True)), batch_size=4)


class Line(pl.LightningModule):
    """Learns a sum, and counts the batches it saw.

    Args:
        metric: What it calls the loss of a validation.
    """

    def __init__(self, metric: str = "val_loss") -> None:
        super().__init__()
        self.metric = metric
        torch.manual_seed(3)
        self.layer = torch.nn.Linear(2, 1)
        self.trained = 0

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        self.trained += 1
        loss = self._loss(batch)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.log(self.metric, self._loss(batch))

    def test_step(self, batch: Any, batch_idx: int) -> None:
        self.log("test_loss", self._loss(batch))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)

    def _loss(self, batch: Any) -> torch.Tensor:
        x, y = batch
        return torch.nn.functional.mse_loss(self.layer(x), y)


def trainer(*callbacks: Any, logger: Any = False, **options: Any) -> pl.Trainer:
    """A quiet trainer on the CPU."""
    quiet: dict[str, Any] = {
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "enable_checkpointing": False,
    }
    return pl.Trainer(
        accelerator="cpu",
        log_every_n_steps=1,
        callbacks=list(callbacks),
        logger=logger,
        **{"devices": 1, **quiet, **options},
    )
