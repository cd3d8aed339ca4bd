"""A trial of two ranks with a GradScaler, its own batch sampler and on_checkpoint hooks."""

import pathlib

import torch
from torch.utils.data import BatchSampler, SequentialSampler

from determined import pytorch


class Files(pytorch.PyTorchCallback):
    def on_checkpoint_save_start(self, checkpoint):
        checkpoint["mine"] = 5

    def on_checkpoint_write_end(self, checkpoint_dir):
        pathlib.Path(checkpoint_dir, "extra.txt").write_text("extra")


class Trial(pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.scaler = context.wrap_scaler(torch.amp.GradScaler("cpu", enabled=False))
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), 0.01))
        assert context.get_global_batch_size() == 8 and context.get_per_slot_batch_size() == 4
        assert context.distributed.get_size() == 2
        self.data = torch.arange(32.0).unsqueeze(1)

    def build_training_data_loader(self):
        sampler = BatchSampler(SequentialSampler(self.data), 4, drop_last=True)
        return pytorch.DataLoader(self.data, batch_sampler=sampler)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(self.data, batch_size=4)

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = self.model(batch / 32).pow(2).mean()
        self.context.backward(self.scaler.scale(loss))
        self.context.step_optimizer(self.optimizer, scaler=self.scaler)
        self.scaler.update()
        return {"loss": loss}

    def evaluate_batch(self, batch, batch_idx):
        return {"seen": len(batch), "loss": self.model(batch).mean()}

    def evaluation_reducer(self):
        return {"seen": pytorch.Reducer.SUM, "loss": pytorch.Reducer.MAX}

    def build_callbacks(self):
        return {"files": Files()}
