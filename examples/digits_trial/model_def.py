"""A network for handwritten digits as a trial: the model, the data, and what is done with a batch."""

import math

import torch
from data import load_splits
from torch import nn

from resolute import InvalidHP, pytorch


class DigitsTrial(pytorch.PyTorchTrial):
    """Hyperparameters: `lr`, `hidden`, `dropout` and `global_batch_size`."""

    def __init__(self, context):
        self.context = context
        self.train_split, self.validation_split = load_splits()
        hidden = context.get_hparam("hidden")
        layers = nn.Sequential(
            nn.Conv2d(1, 16, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(32 * 4 * 4, hidden),
            nn.ReLU(),
            nn.Dropout(context.get_hparam("dropout")),
            nn.Linear(hidden, 10),
        )
        self.model = context.wrap_model(layers)
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=context.get_hparam("lr"))
        self.optimizer = context.wrap_optimizer(optimizer)
        self.loss = nn.CrossEntropyLoss()
        # Counted over all images: a mean of means would weigh a short last batch too much.
        self.hits = context.wrap_reducer(share_of_hits, name="accuracy", for_training=False)

    def build_training_data_loader(self):
        size = self.context.get_per_slot_batch_size()
        return pytorch.DataLoader(self.train_split, batch_size=size, shuffle=True)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(self.validation_split, batch_size=60)

    def train_batch(self, batch, epoch_idx, batch_idx):
        images, digits = batch
        loss = self.loss(self.model(images), digits)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        images, digits = batch
        scores = self.model(images)
        loss = self.loss(scores, digits).item()
        if not math.isfinite(loss):
            # Tells the search that these hyperparameters are invalid, so that it does not try them again.
            raise InvalidHP(f"the loss is {loss}")
        self.hits.update((scores.argmax(dim=1) == digits).tolist())
        return {"validation_loss": loss}


def share_of_hits(batches):
    hits = [hit for batch in batches for hit in batch]
    return sum(hits) / len(hits)
