"""A model as a trial: here with `python3 train.py`, or on a cluster, on one slot or several."""

import logging

import torch
from torch import nn
from torch.optim import AdamW
from torch.utils.data import DataLoader, TensorDataset

from resolute import pytorch

HPARAMS = {"lr": 0.01, "hidden": 32, "global_batch_size": 32}


class MyTrial(pytorch.PyTorchTrial):
    """A trial. The platform runs the loop, computes gradients of the loss and steps the optimizer."""

    def __init__(self, context):
        self.model = context.wrap_model(make_model(context.get_hparam("hidden")))
        self.optimizer = context.wrap_optimizer(AdamW(self.model.parameters(), context.get_hparam("lr")))
        self.batch_size = context.get_per_slot_batch_size()

    def build_training_data_loader(self):
        return DataLoader(make_data(512, seed=1), self.batch_size, shuffle=True)

    def build_validation_data_loader(self):
        return DataLoader(make_data(128, seed=2), batch_size=64)

    def train_batch(self, batch, epoch_idx, batch_idx):
        points, labels = batch
        return {"loss": nn.functional.cross_entropy(self.model(points), labels)}

    def evaluate_batch(self, batch):
        points, labels = batch
        scores = self.model(points)
        hits = (scores.argmax(dim=1) == labels).float().mean()
        return {"validation_loss": nn.functional.cross_entropy(scores, labels), "accuracy": hits}


def make_model(hidden):
    """Replace it by your model."""
    return nn.Sequential(nn.Linear(2, hidden), nn.ReLU(), nn.Linear(hidden, 2))


def make_data(count, *, seed):
    """Points inside and outside of a circle. Replace it by your data."""
    points = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))
    return TensorDataset(points, (points.norm(dim=1) > 1.2).long())


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    with pytorch.init(hparams=HPARAMS) as context:
        pytorch.Trainer(MyTrial(context), context).fit(max_length=pytorch.Epoch(3))
