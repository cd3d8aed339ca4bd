"""A LightningModule as a trial: here with `python3 train.py`, or on a cluster."""

import logging

import lightning.pytorch as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import resolute

HPARAMS = {"lr": 0.01, "hidden": 32, "batch_size": 32}


class MyModule(pl.LightningModule):
    def __init__(self, lr, hidden):
        super().__init__()
        self.lr = lr
        self.layers = nn.Sequential(nn.Linear(2, hidden), nn.ReLU(), nn.Linear(hidden, 2))

    def training_step(self, batch, batch_idx):
        points, labels = batch
        loss = nn.functional.cross_entropy(self.layers(points), labels)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        points, labels = batch
        self.log("validation_loss", nn.functional.cross_entropy(self.layers(points), labels))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.lr)


def make_data(count, *, seed):
    """Points inside and outside of a circle. Replace it by your data."""
    points = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))
    return TensorDataset(points, (points.norm(dim=1) > 1.2).long())


def main():
    # On a cluster the hyperparameters and the seed are those of the trial.
    with resolute.core.init(hparams=HPARAMS) as context:
        hparams = context.hparams
        pl.seed_everything(context.seed)
        callback = resolute.lightning.ResoluteCallback(context)
        trainer = pl.Trainer(
            max_epochs=3,  # -1 leaves the length of a trial to a search
            callbacks=[callback],
            logger=resolute.lightning.ResoluteLogger(callback),
            log_every_n_steps=10,
            enable_checkpointing=False,  # the platform keeps them
            enable_progress_bar=False,
            accelerator="auto",
            devices=1,
        )
        trainer.fit(
            MyModule(hparams["lr"], hparams["hidden"]),
            DataLoader(make_data(512, seed=1), hparams["batch_size"], shuffle=True),
            DataLoader(make_data(128, seed=2), 128),
            ckpt_path=callback.checkpoint_path,
        )


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    main()
