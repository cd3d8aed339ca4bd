"""A DeepSpeedTrial whose DeepSpeed config is a file that a hyperparameter overwrites in parts."""

import deepspeed
import torch

from determined.pytorch import DataLoader
from determined.pytorch.deepspeed import DeepSpeedTrial, DeepSpeedTrialContext, overwrite_deepspeed_config


class DSTrial(DeepSpeedTrial):
    def __init__(self, context: DeepSpeedTrialContext) -> None:
        self.context = context
        config = overwrite_deepspeed_config(
            context.get_hparam("deepspeed_config"), context.get_hparam("overwrite_deepspeed_args")
        )
        model = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
        engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
        self.engine = context.wrap_model_engine(engine)
        assert context.get_num_micro_batches_per_slot() == 2
        assert context.get_train_micro_batch_size_per_gpu() == 4

    def build_training_data_loader(self):
        return DataLoader(torch.ones(64, 2), batch_size=self.context.train_micro_batch_size_per_gpu)

    def build_validation_data_loader(self):
        return DataLoader(torch.ones(16, 2), batch_size=4)

    def train_batch(self, dataloader_iter, epoch_idx, batch_idx):
        batch = self.context.to_device(next(dataloader_iter))
        loss = self.engine(batch).pow(2).mean()
        self.engine.backward(loss)
        self.engine.step()
        return {"loss": loss}

    def evaluate_batch(self, dataloader_iter, batch_idx):
        batch = self.context.to_device(next(dataloader_iter))
        with torch.no_grad():
            return {"loss": self.engine(batch).pow(2).mean()}
