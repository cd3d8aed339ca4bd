"""The same network in two stages, one on each slot, which pass activations and gradients on."""

import deepspeed
from deepspeed.pipe import PipelineModule
from model_def import DigitsTrial
from torch import nn

from determined import pytorch
from determined.pytorch import deepspeed as det_ds


class PipelineTrial(DigitsTrial):
    """Hyperparameters as for `DigitsTrial`."""

    def __init__(self, context):
        self.context = context
        self.load_data()
        config = det_ds.overwrite_deepspeed_config("ds_config.json", context.get_hparam("overwrite"))
        model = PipelineModule(
            layers=list(self.build_model()),
            num_stages=2,
            loss_fn=nn.CrossEntropyLoss(),
            partition_method="uniform",
        )
        engine, *_ = deepspeed.initialize(model=model, config=config)
        self.engine = context.wrap_model_engine(engine)

    def build_training_data_loader(self):
        # What stages pass on must always have the same shape: no short batch at the end.
        size = self.context.train_micro_batch_size_per_gpu
        return pytorch.DataLoader(self.train_split, batch_size=size, shuffle=True, drop_last=True)

    def build_validation_data_loader(self):
        size = self.context.train_micro_batch_size_per_gpu
        return pytorch.DataLoader(self.validation_split, batch_size=size, drop_last=True)

    def train_batch(self, dataloader_iter, epoch_idx, batch_idx):
        # Called once for each batch: the pipeline takes all its micro batches.
        return {"loss": self.engine.train_batch(dataloader_iter), "lr": self.engine.get_lr()[0]}

    def evaluate_batch(self, dataloader_iter, batch_idx):
        return {"validation_loss": self.engine.eval_batch(dataloader_iter)}
