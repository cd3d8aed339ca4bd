"""Handwritten digits by Accelerate: here with `python3 train.py`, or on a cluster."""

import argparse
import logging
import os

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import resolute
from resolute.accelerate import ResoluteTracker, ResumableLoader

DEFAULT_HPARAMS = {"lr": 0.003, "hidden": 64, "batch_size": 64}
VALIDATION_IMAGES = 360
REPORT_EVERY = 10  # batches


def make_loaders(batch_size):
    bunch = load_digits()
    images = torch.tensor(bunch.data, dtype=torch.float32) / 16.0
    digits = torch.tensor(bunch.target)
    order = torch.randperm(len(digits), generator=torch.Generator().manual_seed(0))
    validation, training = order[:VALIDATION_IMAGES], order[VALIDATION_IMAGES:]
    pairs = TensorDataset(images[training], digits[training])
    return (
        DataLoader(pairs, batch_size, shuffle=True),
        DataLoader(TensorDataset(images[validation], digits[validation]), VALIDATION_IMAGES),
    )


class Training:
    """A model on its way: all of it is in what the accelerator saves."""

    def __init__(self, accelerator, hparams, seed):
        set_seed(seed)
        self.accelerator = accelerator
        model = nn.Sequential(nn.Linear(64, hparams["hidden"]), nn.ReLU(), nn.Linear(hparams["hidden"], 10))
        optimizer = torch.optim.AdamW(model.parameters(), lr=hparams["lr"])
        loaders = make_loaders(hparams["batch_size"])
        prepared = accelerator.prepare(model, optimizer, *loaders)
        self.model, self.optimizer, loader, self.validation_loader = prepared
        self.loader = ResumableLoader(loader)
        accelerator.register_for_checkpointing(self.loader)

    @property
    def steps(self):
        return self.loader.epoch * len(self.loader) + self.loader.batches

    @property
    def epochs(self):
        return self.loader.epoch

    def train_batch(self, batch):
        images, digits = batch
        loss = nn.functional.cross_entropy(self.model(images), digits)
        self.accelerator.backward(loss)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss

    @torch.no_grad()
    def accuracy(self):
        hits = [self.model(images).argmax(dim=1) == digits for images, digits in self.validation_loader]
        return self.accelerator.gather_for_metrics(torch.cat(hits)).float().mean().item()

    def mean_over_ranks(self, loss):
        return self.accelerator.reduce(loss.detach(), reduction="mean").item()


def save(context, training):
    # Every rank has a file of its own: its random numbers.
    with context.checkpoint.store_path({"steps_completed": training.steps}, shard=True) as (directory, _):
        training.accelerator.save_state(directory)


def load(context, training, checkpoint):
    with context.checkpoint.restore_path(checkpoint) as directory:
        training.accelerator.load_state(directory)


def train_epoch(context, training, *, batches=None):
    """Trains the rest of an epoch; returns False if it was preempted, with a checkpoint behind it."""
    for number, batch in enumerate(training.loader, start=1):
        loss = training.train_batch(batch)
        if training.steps % REPORT_EVERY == 0:
            training.accelerator.log({"loss": training.mean_over_ranks(loss)}, step=training.steps)
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


def other_ranks():
    """Meets the ranks that a launch layer has started; returns None where this process is alone."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return None
    return resolute.core.DistributedContext.from_torch_distributed()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3, help="how long to train without a cluster")
    parser.add_argument("--test", action="store_true", help="train one batch only")
    arguments = parser.parse_args()
    info = resolute.get_cluster_info()
    hparams = DEFAULT_HPARAMS if info is None else info.trial.hparams
    with resolute.core.init(distributed=other_ranks()) as context:
        accelerator = Accelerator(
            log_with=ResoluteTracker(context),
            cpu=not torch.cuda.is_available(),  # without GPUs it looks for other ranks only on request
            # So that several ranks train as one does, a batch is shared, and the order follows from the seed.
            dataloader_config=DataLoaderConfiguration(split_batches=True, use_seedable_sampler=True),
        )
        accelerator.init_trackers("digits")
        training = Training(accelerator, hparams, seed=0 if info is None else info.trial.trial_seed)
        if info is not None and info.latest_checkpoint is not None:
            load(context, training, info.latest_checkpoint)
        for op in context.searcher.operations():
            epochs = op.length if info else 1 if arguments.test else arguments.epochs
            while training.epochs < epochs:
                if not train_epoch(context, training, batches=1 if arguments.test else None):
                    return
                if accelerator.is_main_process:
                    op.report_progress(training.epochs)
                if arguments.test:
                    break
            accuracy = training.accuracy()
            if accelerator.is_main_process:
                op.report_completed(accuracy)
        accelerator.end_training()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=resolute.LOG_FORMAT)
    main()
