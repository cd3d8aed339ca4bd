"""A model as a trial: the platform runs the training loop, on one slot or several."""

import torch
from torch import nn
from torch.utils.data import TensorDataset

from resolute import pytorch


class MyTrial(pytorch.PyTorchTrial):
    """Hyperparameters: `lr`, `hidden` and `global_batch_size`."""

    def __init__(self, context):
        self.context = context
        hidden = context.get_hparam("hidden")
        self.model = context.wrap_model(nn.Sequential(nn.Linear(2, hidden), nn.ReLU(), nn.Linear(hidden, 2)))
        self.optimizer = context.wrap_optimizer(
            torch.optim.AdamW(self.model.parameters(), lr=context.get_hparam("lr"))
        )
        self.loss = nn.CrossEntropyLoss()

    def build_training_data_loader(self):
        size = self.context.get_per_slot_batch_size()
        return pytorch.DataLoader(make_data(512, seed=1), batch_size=size, shuffle=True)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(make_data(128, seed=2), batch_size=64)

    def train_batch(self, batch, epoch_idx, batch_idx):
        points, labels = batch
        loss = self.loss(self.model(points), labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        points, labels = batch
        scores = self.model(points)
        hits = (scores.argmax(dim=1) == labels).float().mean()
        return {"validation_loss": self.loss(scores, labels), "accuracy": hits}


def make_data(count, *, seed):
    """Points inside and outside of a circle. Replace it by your data."""
    points = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))
    return TensorDataset(points, (points.norm(dim=1) > 1.2).long())
