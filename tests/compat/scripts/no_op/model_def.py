"""A PyTorchTrial that learns nothing: it only walks through batches, validations and checkpoints of a search."""

import torch

from determined import pytorch


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.tensor([float(index)])


class NoOpTrial(pytorch.PyTorchTrial):
    def __init__(self, context: pytorch.PyTorchTrialContext) -> None:
        self.context = context
        self.value = context.get_hparam("validation_value")
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=1e-6))

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = self.model(batch).mean()
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss.item()}

    def evaluate_batch(self, batch):
        return {"loss": self.value}

    def build_training_data_loader(self):
        return pytorch.DataLoader(Numbers(), batch_size=self.context.get_per_slot_batch_size())

    def build_validation_data_loader(self):
        return pytorch.DataLoader(Numbers(), batch_size=self.context.get_per_slot_batch_size())
