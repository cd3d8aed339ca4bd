"""The Trainer of the PyTorch guide, in a script of one's own."""

import logging

import torch

import determined as det
from determined import pytorch


class LineTrial(pytorch.PyTorchTrial):
    def __init__(self, context: pytorch.PyTorchTrialContext, hparams: dict) -> None:
        self.context = context
        x = torch.arange(16.0).unsqueeze(1) / 16
        self.dataset = torch.utils.data.TensorDataset(x, 2 * x)
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        self.opt = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), hparams["lr"]))
        self.sched = context.wrap_lr_scheduler(
            torch.optim.lr_scheduler.LambdaLR(self.opt, lambda n: 0.9**n),
            step_mode=pytorch.LRScheduler.StepMode.STEP_EVERY_BATCH,
            frequency=2,
        )

    def build_training_data_loader(self):
        return pytorch.DataLoader(self.dataset, batch_size=self.context.get_per_slot_batch_size())

    def build_validation_data_loader(self):
        return pytorch.DataLoader(self.dataset, batch_size=4)

    def train_batch(self, batch, epoch_idx, batch_idx):
        x, y = batch
        loss = (self.model(x) - y).pow(2).mean()
        self.context.backward(loss)
        self.context.step_optimizer(
            self.opt, clip_grads=lambda params: torch.nn.utils.clip_grad_norm_(params, 1.0)
        )
        return loss

    def evaluate_batch(self, batch, batch_idx):
        x, y = batch
        return {"loss": (self.model(x) - y).pow(2).mean()}

    def build_callbacks(self):
        return {"count": Count()}


class Count(pytorch.PyTorchCallback):
    def __init__(self):
        self.epochs = 0

    def on_training_epoch_end(self, epoch_idx):
        self.epochs += 1

    def on_checkpoint_upload_end(self, uuid):
        logging.info("uploaded %s", uuid)

    def state_dict(self):
        return {"epochs": self.epochs}

    def load_state_dict(self, state_dict):
        self.epochs = state_dict["epochs"]


def main(local: bool):
    info = det.get_cluster_info()
    if local:
        latest_checkpoint, hparams = None, {"lr": 0.1}
    else:
        latest_checkpoint, hparams = info.latest_checkpoint, info.trial.hparams
    with pytorch.init(hparams=hparams) as train_context:
        trial = LineTrial(train_context, hparams=hparams)
        trainer = pytorch.Trainer(trial, train_context)
        trainer.fit(
            max_length=pytorch.Epoch(2),
            checkpoint_period=pytorch.Batch(3),
            validation_period=pytorch.Epoch(1),
            reporting_period=pytorch.Batch(2),
            checkpoint_policy="all",
            latest_checkpoint=latest_checkpoint,
            step_zero_validation=True,
        )


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    main(local=det.get_cluster_info() is None)
