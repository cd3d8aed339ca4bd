"""A network for handwritten digits as a trial with DeepSpeed's engine; see the configs for what runs it."""

import deepspeed
from data import load_splits
from torch import nn

from determined import pytorch
from determined.pytorch import deepspeed as det_ds


class DigitsTrial(det_ds.DeepSpeedTrial):
    """Hyperparameters: `hidden`, and `overwrite`, which goes into DeepSpeed's config."""

    def __init__(self, context):
        self.context = context
        self.load_data()
        config = det_ds.overwrite_deepspeed_config("ds_config.json", context.get_hparam("overwrite"))
        engine, *_ = deepspeed.initialize(model=self.build_model(), config=config)
        self.engine = context.wrap_model_engine(engine)
        self.loss = nn.CrossEntropyLoss()
        # Counted over all images: a mean of means would weigh a short last batch too much.
        self.hits = context.wrap_reducer(share_of_hits, name="accuracy", for_training=False)

    def load_data(self):
        self.train_split, self.validation_split = load_splits()

    def build_model(self):
        hidden = self.context.get_hparam("hidden")
        return nn.Sequential(nn.Flatten(), nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, 10))

    def build_training_data_loader(self):
        size = self.context.train_micro_batch_size_per_gpu
        return pytorch.DataLoader(self.train_split, batch_size=size, shuffle=True)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(self.validation_split, batch_size=60)

    def train_batch(self, dataloader_iter, epoch_idx, batch_idx):
        # Called for each micro batch; the engine steps after the last one of a batch.
        images, digits = self.context.to_device(next(dataloader_iter))
        loss = self.loss(self.engine(images), digits)
        self.engine.backward(loss)
        self.engine.step()
        return {"loss": loss, "lr": self.engine.get_lr()[0]}

    def evaluate_batch(self, dataloader_iter, batch_idx):
        images, digits = self.context.to_device(next(dataloader_iter))
        scores = self.engine(images)
        self.hits.update((scores.argmax(dim=1) == digits).tolist())
        return {"validation_loss": self.loss(scores, digits)}


def share_of_hits(batches):
    hits = [hit for batch in batches for hit in batch]
    return sum(hits) / len(hits)
