"""A LightningModule trained as a PyTorchTrial by LightningAdapter."""

import lightning as pl
import torch

from determined.pytorch import DataLoader, PyTorchCallback, PyTorchTrialContext
from determined.pytorch.lightning import LightningAdapter


class Line(pl.LightningModule):
    def __init__(self, lr):
        super().__init__()
        self.lr = lr
        self.layer = torch.nn.Linear(1, 1)
        self.epochs = 0

    def forward(self, x):
        return self.layer(x)

    def training_step(self, batch, batch_idx):
        loss = self(batch).pow(2).mean()
        self.log("step_loss", loss.item())
        return {"loss": loss, "twice": 2 * loss}

    def validation_step(self, batch, batch_idx):
        return {"val_loss": self(batch).pow(2).mean()}

    def on_train_epoch_start(self):
        self.epochs += 1

    def on_save_checkpoint(self, checkpoint):
        checkpoint["epochs"] = self.epochs

    def on_load_checkpoint(self, checkpoint):
        self.epochs = checkpoint["epochs"]

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=self.lr)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
        return [optimizer], [{"scheduler": scheduler, "interval": "step", "frequency": 2}]


class Watch(PyTorchCallback):
    def __init__(self, module):
        self.module = module

    def on_trial_shutdown(self):
        assert self.module.epochs == 2, self.module.epochs


class LineTrial(LightningAdapter):
    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        self.line = Line(lr=context.get_hparam("lr"))
        super().__init__(context, lightning_module=self.line)

    def build_callbacks(self):
        return {**super().build_callbacks(), "watch": Watch(self.line)}

    def build_training_data_loader(self):
        return DataLoader(torch.ones(16, 1), batch_size=self.context.get_per_slot_batch_size())

    def build_validation_data_loader(self):
        return DataLoader(torch.ones(8, 1), batch_size=4)
