"""Handwritten digits by Accelerate: here with `python3 train.py`, or on a cluster."""

import argparse
import logging

import torch
from accelerate import Accelerator, skip_first_batches
from accelerate.utils import set_seed
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import resolute
from resolute.accelerate import ResoluteTracker

DEFAULT_HPARAMS = {"lr": 0.003, "hidden": 64, "batch_size": 64}
VALIDATION_IMAGES = 360
REPORT_EVERY = 10  # batches


def make_loaders(batch_size):
    bunch = load_digits()
    images = torch.tensor(bunch.data, dtype=torch.float32) / 16.0
    digits = torch.tensor(bunch.target)
    order = torch.randperm(len(digits), generator=torch.Generator().manual_seed(0))
    validation, training = order[:VALIDATION_IMAGES], order[VALIDATION_IMAGES:]
    return (
        DataLoader(TensorDataset(images[training], digits[training]), batch_size, shuffle=True),
        DataLoader(TensorDataset(images[validation], digits[validation]), VALIDATION_IMAGES),
    )


class Training:
    """A model on its way: `steps` says how far; all else is in what the accelerator saves.

    Every epoch draws its order from a seed of its own, so that a resume finds the batches it has not seen.
    """

    def __init__(self, accelerator, hparams, seed):
        set_seed(seed)
        self.accelerator = accelerator
        self.seed = seed
        model = nn.Sequential(nn.Linear(64, hparams["hidden"]), nn.ReLU(), nn.Linear(hparams["hidden"], 10))
        optimizer = torch.optim.AdamW(model.parameters(), lr=hparams["lr"])
        loaders = make_loaders(hparams["batch_size"])
        prepared = accelerator.prepare(model, optimizer, *loaders)
        self.model, self.optimizer, self.loader, self.validation_loader = prepared
        self.steps = 0

    @property
    def epochs(self):
        return self.steps // len(self.loader)

    def rest_of_epoch(self):
        """Yields the batches of this epoch that were not trained yet."""
        epoch, done = divmod(self.steps, len(self.loader))
        set_seed(self.seed + epoch)
        yield from skip_first_batches(self.loader, done)

    def train_batch(self, batch):
        images, digits = batch
        loss = nn.functional.cross_entropy(self.model(images), digits)
        self.accelerator.backward(loss)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.steps += 1
        return loss

    @torch.no_grad()
    def accuracy(self):
        hits = [self.model(images).argmax(dim=1) == digits for images, digits in self.validation_loader]
        return torch.cat(hits).float().mean().item()


def save(context, training):
    with context.checkpoint.store_path({"steps_completed": training.steps}) as (directory, _):
        training.accelerator.save_state(directory)


def load(context, training, checkpoint):
    with context.checkpoint.restore_path(checkpoint) as directory:
        training.accelerator.load_state(directory)
    training.steps = context.checkpoint.get_metadata(checkpoint)["steps_completed"]


def train_epoch(context, training, *, batches=None):
    """Trains the rest of an epoch; returns False if it was preempted, with a checkpoint behind it."""
    for number, batch in enumerate(training.rest_of_epoch(), start=1):
        loss = training.train_batch(batch)
        if training.steps % REPORT_EVERY == 0:
            training.accelerator.log({"loss": loss.item()}, step=training.steps)
        if context.preempt.should_preempt():
            save(context, training)
            return False
        if number == batches:
            break
    validation = {"accuracy": training.accuracy()}
    training.accelerator.log(
        validation, step=training.steps, log_kwargs={"resolute": {"group": "validation"}}
    )
    save(context, training)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3, help="how long to train without a cluster")
    parser.add_argument("--test", action="store_true", help="train one batch only")
    arguments = parser.parse_args()
    info = resolute.get_cluster_info()
    hparams = DEFAULT_HPARAMS if info is None else info.trial.hparams
    with resolute.core.init() as context:
        accelerator = Accelerator(log_with=ResoluteTracker(context))
        accelerator.init_trackers("digits")
        training = Training(accelerator, hparams, seed=0 if info is None else info.trial.trial_seed)
        if info is not None and info.latest_checkpoint is not None:
            load(context, training, info.latest_checkpoint)
        for op in context.searcher.operations():
            epochs = op.length if info else 1 if arguments.test else arguments.epochs
            while training.epochs < epochs:
                if not train_epoch(context, training, batches=1 if arguments.test else None):
                    return
                op.report_progress(training.epochs)
                if arguments.test:
                    break
            op.report_completed(training.accuracy())
        accelerator.end_training()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=resolute.LOG_FORMAT)
    main()
