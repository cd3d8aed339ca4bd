"""A PyTorchTrial that the harness finds by `module:Class`."""

from typing import Any, Dict, Sequence, Union

import torch
from torch import nn

from determined.pytorch import DataLoader, LRScheduler, PyTorchTrial, PyTorchTrialContext

TorchData = Union[Dict[str, torch.Tensor], Sequence[torch.Tensor], torch.Tensor]


class XorTrial(PyTorchTrial):
    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        generator = torch.Generator().manual_seed(1)
        x = torch.rand(context.get_data_config()["size"], 2, generator=generator)
        self.data = torch.utils.data.TensorDataset(x, ((x[:, 0] > 0.5) ^ (x[:, 1] > 0.5)).float())
        hidden = self.context.get_hparam("hidden")
        self.model = self.context.wrap_model(
            nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        )
        self.optimizer = self.context.wrap_optimizer(
            torch.optim.Adam(self.model.parameters(), lr=self.context.get_hparam("learning_rate"))
        )
        self.scheduler = self.context.wrap_lr_scheduler(
            torch.optim.lr_scheduler.StepLR(self.optimizer, 1, 0.9), LRScheduler.StepMode.STEP_EVERY_EPOCH
        )
        self.loss = nn.BCEWithLogitsLoss()

    def build_training_data_loader(self) -> DataLoader:
        return DataLoader(self.data, batch_size=self.context.get_per_slot_batch_size(), shuffle=True)

    def build_validation_data_loader(self) -> DataLoader:
        return DataLoader(self.data, batch_size=self.context.get_per_slot_batch_size())

    def train_batch(self, batch: TorchData, epoch_idx: int, batch_idx: int) -> Dict[str, Any]:
        x, y = batch
        loss = self.loss(self.model(x).squeeze(1), y)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss, "lr": self.scheduler.get_last_lr()[0]}

    def evaluate_batch(self, batch: TorchData) -> Dict[str, Any]:
        x, y = batch
        return {"validation_loss": self.loss(self.model(x).squeeze(1), y).item()}
