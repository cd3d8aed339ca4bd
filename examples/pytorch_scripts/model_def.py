"""A small trial whose settings are arguments, not hyperparameters of a config."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import TensorDataset

from determined import pytorch

VALIDATION_IMAGES = 360


class DigitsTrial(pytorch.PyTorchTrial):
    """Trains a small network on handwritten digits. `hidden` is its width."""

    def __init__(self, context, hidden):
        self.context = context
        self.model = context.wrap_model(
            nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, 10))
        )
        self.optimizer = context.wrap_optimizer(torch.optim.Adam(self.model.parameters(), lr=0.003))
        self.criterion = nn.CrossEntropyLoss()

    def build_training_data_loader(self):
        return pytorch.DataLoader(images_of(training=True), batch_size=32, shuffle=True)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(images_of(training=False), batch_size=60)

    def train_batch(self, batch, epoch_idx, batch_idx):
        images, digits = batch
        loss = self.criterion(self.model(images), digits)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        images, digits = batch
        output = self.model(images)
        return {
            "validation_loss": self.criterion(output, digits),
            "accuracy": (output.argmax(dim=1) == digits).float().mean(),
        }


def images_of(*, training):
    bunch = load_digits()
    pairs = TensorDataset(torch.tensor(bunch.data, dtype=torch.float32) / 16.0, torch.tensor(bunch.target))
    order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(0))
    chosen = order[VALIDATION_IMAGES:] if training else order[:VALIDATION_IMAGES]
    return torch.utils.data.Subset(pairs, chosen.tolist())
