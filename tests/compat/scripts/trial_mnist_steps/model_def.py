"""A PyTorchTrial of the first releases, whose config counts in steps: the harness steps model and optimizer."""

import torch
from torch import nn

import determined as det
from determined.pytorch import DataLoader, LRScheduler, PyTorchTrial


class Digits(torch.utils.data.Dataset):
    """Images of one bright row, whose number is their class."""

    def __init__(self, records):
        self.records = records

    def __len__(self):
        return self.records

    def __getitem__(self, index):
        image = torch.zeros(1, 10, 10)
        image[0, index % 10] = 1.0
        return image, index % 10


class MNistTrial(PyTorchTrial):
    def __init__(self, context: det.TrialContext) -> None:
        self.context = context

    def build_model(self) -> nn.Module:
        filters = self.context.get_hparam("n_filters")
        return nn.Sequential(nn.Conv2d(1, filters, 3), nn.ReLU(), nn.Flatten(), nn.Linear(filters * 64, 10))

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.Adadelta(model.parameters(), lr=self.context.get_hparam("learning_rate"))

    def create_lr_scheduler(self, optimizer: torch.optim.Optimizer) -> LRScheduler:
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.9)
        return LRScheduler(scheduler, step_mode=LRScheduler.StepMode.STEP_EVERY_EPOCH)

    def train_batch(self, batch, model: nn.Module, epoch_idx: int, batch_idx: int):
        images, labels = batch
        return {"loss": nn.functional.cross_entropy(model(images), labels)}

    def evaluate_batch(self, batch, model: nn.Module):
        images, labels = batch
        wrong = (model(images).argmax(dim=1) != labels).sum().item()
        return {"validation_error": wrong / len(labels)}

    def build_training_data_loader(self):
        data = Digits(self.context.get_data_config()["records"])
        return DataLoader(data, batch_size=self.context.get_per_slot_batch_size())

    def build_validation_data_loader(self):
        return self.build_training_data_loader()
