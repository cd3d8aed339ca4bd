"""What the DSAT guide wants of a DeepSpeedTrial: its config from the hyperparameters."""

import deepspeed
import torch

from determined.pytorch import DataLoader, dsat
from determined.pytorch.deepspeed import DeepSpeedTrial, DeepSpeedTrialContext


class DSTrial(DeepSpeedTrial):
    def __init__(self, context: DeepSpeedTrialContext) -> None:
        self.context = context
        config = dsat.get_ds_config_from_hparams(context.get_hparams())
        model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
        engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
        self.engine = context.wrap_model_engine(engine)

    def build_training_data_loader(self):
        return DataLoader(torch.ones(4096, 64), batch_size=self.context.get_train_micro_batch_size_per_gpu())

    def build_validation_data_loader(self):
        return DataLoader(torch.ones(8, 64), batch_size=4)

    def train_batch(self, dataloader_iter, epoch_idx, batch_idx):
        loss = self.engine(self.context.to_device(next(dataloader_iter))).pow(2).mean()
        self.engine.backward(loss)
        self.engine.step()
        return {"loss": loss}

    def evaluate_batch(self, dataloader_iter, batch_idx):
        return {"loss": self.engine(self.context.to_device(next(dataloader_iter))).pow(2).mean()}
