"""A network for handwritten digits that is measured, averaged and constrained by code of its own."""

import torch
from averaging import AveragedWeights, ConfusionTable
from confusion import Confusion, largest
from data import load_splits
from torch import nn

from resolute import InvalidHP, pytorch


class DigitsTrial(pytorch.PyTorchTrial):
    """Hyperparameters: `lr`, `depth`, `hidden`, `max_parameters`, `decay` and `global_batch_size`."""

    def __init__(self, context):
        self.context = context
        self.train_split, self.validation_split = load_splits()
        layers = make_layers(context.get_hparam("depth"), context.get_hparam("hidden"))
        parameters = sum(parameter.numel() for parameter in layers.parameters())
        if parameters > context.get_hparam("max_parameters"):
            raise InvalidHP(f"a network of {parameters} parameters is too large")
        self.model = context.wrap_model(layers)
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=context.get_hparam("lr"))
        self.optimizer = context.wrap_optimizer(optimizer)
        self.loss = nn.CrossEntropyLoss()
        self.averaged = AveragedWeights(layers, context.get_hparam("decay"))
        # Without a name: it gives several metrics, each by its own.
        self.confusion = context.wrap_reducer(Confusion(), for_training=False)
        self.norm = context.wrap_reducer(largest, name="largest_gradient", for_validation=False)

    def build_training_data_loader(self):
        size = self.context.get_per_slot_batch_size()
        return pytorch.DataLoader(self.train_split, batch_size=size, shuffle=True)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(self.validation_split, batch_size=100)

    def build_callbacks(self):
        return {"averaged": self.averaged, "table": ConfusionTable(self.confusion)}

    def train_batch(self, batch, epoch_idx, batch_idx):
        images, digits = batch
        loss = self.loss(self.model(images), digits)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer, clip_grads=self.clip)
        self.averaged.model.update_parameters(self.model)
        return {"loss": loss}

    def clip(self, parameters):
        self.norm.update(nn.utils.clip_grad_norm_(parameters, max_norm=1.0).item())

    def evaluate_batch(self, batch):
        images, digits = batch
        scores = self.averaged.model(images)
        self.confusion.update(digits, scores.argmax(dim=1))
        return {"validation_loss": self.loss(scores, digits)}


def make_layers(depth, hidden):
    layers = [nn.Flatten()]
    size = 64
    for _ in range(depth):
        layers += [nn.Linear(size, hidden), nn.ReLU()]
        size = hidden
    return nn.Sequential(*layers, nn.Linear(size, 10))
