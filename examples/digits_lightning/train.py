"""Handwritten digits by Lightning: here with `python3 train.py`, or on a cluster."""

import argparse
import logging

import lightning.pytorch as pl
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import resolute
from resolute.lightning import ResoluteCallback, ResoluteLogger

DEFAULT_HPARAMS = {"lr": 0.003, "hidden": 64, "batch_size": 64}
VALIDATION_IMAGES = 360


class Digits(pl.LightningModule):
    def __init__(self, lr, hidden):
        super().__init__()
        self.lr = lr
        self.layers = nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, 10))

    def training_step(self, batch, batch_idx):
        images, digits = batch
        loss = nn.functional.cross_entropy(self.layers(images), digits)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        images, digits = batch
        hits = self.layers(images).argmax(dim=1) == digits
        self.log("accuracy", hits.float().mean())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.lr)


def make_loaders(batch_size):
    bunch = load_digits()
    images = torch.tensor(bunch.data, dtype=torch.float32) / 16.0
    digits = torch.tensor(bunch.target)
    order = torch.randperm(len(digits), generator=torch.Generator().manual_seed(0))
    validation, training = order[:VALIDATION_IMAGES], order[VALIDATION_IMAGES:]
    return (
        DataLoader(TensorDataset(images[training], digits[training]), batch_size, shuffle=True),
        DataLoader(TensorDataset(images[validation], digits[validation]), VALIDATION_IMAGES),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3, help="how long to train without a cluster")
    parser.add_argument("--test", action="store_true", help="train one batch only")
    arguments = parser.parse_args()
    info = resolute.get_cluster_info()
    hparams = DEFAULT_HPARAMS if info is None else info.trial.hparams
    pl.seed_everything(0 if info is None else info.trial.trial_seed)
    with resolute.core.init() as context:
        callback = ResoluteCallback(context)
        trainer = pl.Trainer(
            # On a cluster the search decides.
            max_epochs=-1 if info else 1 if arguments.test else arguments.epochs,
            limit_train_batches=1 if arguments.test else None,
            callbacks=[callback],
            logger=ResoluteLogger(callback),
            log_every_n_steps=10,
            enable_checkpointing=False,  # the platform keeps them
            enable_progress_bar=info is None,
            accelerator="auto",
            devices=1,
        )
        module = Digits(hparams["lr"], hparams["hidden"])
        trainer.fit(module, *make_loaders(hparams["batch_size"]), ckpt_path=callback.checkpoint_path)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=resolute.LOG_FORMAT)
    main()
