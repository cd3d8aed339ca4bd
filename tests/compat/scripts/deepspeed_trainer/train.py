"""deepspeed.init and deepspeed.Trainer of 0.38, with a custom save, load and reducer."""

import logging

import deepspeed
import torch

import determined as det
from determined import pytorch
from determined.pytorch import deepspeed as det_ds


class Trial(det_ds.DeepSpeedTrial):
    def __init__(self, context, hparams):
        self.context = context
        self.reducer = context.wrap_reducer(lambda values: max(values), "largest", for_training=False)
        model = torch.nn.Linear(2, 1)
        config = {
            "train_micro_batch_size_per_gpu": 2,
            "optimizer": {"type": "Adam", "params": {"lr": hparams["lr"], "torch_adam": True}},
        }
        engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
        self.model = context.wrap_model_engine(engine)
        self.mpu = context.set_mpu(det_ds.make_data_parallel_mpu(context.distributed))

    def build_training_data_loader(self):
        return pytorch.DataLoader(torch.rand(16, 2), batch_size=2)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(torch.rand(8, 2), batch_size=2)

    def train_batch(self, dataloader_iter, epoch_idx, batch_idx):
        loss = self.model(self.context.to_device(next(dataloader_iter))).pow(2).mean()
        self.model.backward(loss)
        self.model.step()
        return {"loss": loss}

    def evaluate_batch(self, dataloader_iter, batch_idx):
        loss = self.model(self.context.to_device(next(dataloader_iter))).pow(2).mean()
        self.reducer.update(loss.item())
        return {"loss": loss}

    def save(self, context, path):
        self.model.save_checkpoint(path, tag="mine")

    def load(self, context, load_path):
        self.model.load_checkpoint(load_path, tag="mine")


def main():
    info = det.get_cluster_info()
    with det_ds.init(hparams=info.trial.hparams) as train_context:
        trainer = det_ds.Trainer(Trial(train_context, info.trial.hparams), train_context)
        trainer.fit(
            max_length=pytorch.Batch(4),
            validation_period=pytorch.Batch(2),
            latest_checkpoint=info.latest_checkpoint,
        )


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    main()
