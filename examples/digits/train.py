"""Trains a network on handwritten digits: on a cluster as a trial, or right here with `python3 train.py`."""

import argparse
import logging
import math
import os

import torch
from data import load_splits
from training import Training

import resolute

STEPS_PER_REPORT = 10
DEFAULT_HPARAMS = {"lr": 0.003, "hidden": 64, "dropout": 0.2, "batch_size": 64}

log = logging.getLogger("digits")


def main(context, training, trial_id, *, checkpoint=None, epochs=None):
    """Trains as long as the search wants, or `epochs` if that is given.

    Args:
        context: The Core API.
        training: What to train.
        trial_id: This trial's number.
        checkpoint: Identifier of the checkpoint to start from.
        epochs: Length of the training where no search decides it.
    """
    if checkpoint is not None:
        load(context, training, trial_id, checkpoint)
    for op in context.searcher.operations():
        length = op.length if epochs is None else epochs
        metrics = train_until(context, training, trial_id, op=op, length=length)
        if metrics is None:
            return  # preempted; the trial goes on from its checkpoint later
        op.report_completed(metrics["accuracy"])


def train_until(context, training, trial_id, *, op, length):
    """Trains until `length` epochs are done in all; returns the last validation, or None if asked to stop."""
    end = length * training.batches_per_epoch
    context.train.set_status("training")
    metrics = None
    while training.steps < end:
        loss = training.train_batch()
        if training.steps % STEPS_PER_REPORT == 0:
            context.train.report_training_metrics(training.steps, {"loss": loss.item()})
        # A checkpoint beside every validation: so the best validation always has its checkpoint.
        if training.at_epoch_end:
            metrics = validate(context, training)
            op.report_progress(training.steps // training.batches_per_epoch)
            save(context, training, trial_id)
        if context.preempt.should_preempt():
            if not training.at_epoch_end:
                save(context, training, trial_id)
            return None
    # A trial that goes on exactly where this operation ends has no validation of its own yet.
    return metrics or validate(context, training)


def validate(context, training):
    metrics = training.validate()
    if not math.isfinite(metrics["validation_loss"]):
        # Tells the search that these hyperparameters are invalid, so that it does not try them again.
        raise resolute.InvalidHP(f"the loss is {metrics['validation_loss']} after {training.steps} steps")
    context.train.report_validation_metrics(training.steps, metrics)
    return metrics


def save(context, training, trial_id):
    with context.checkpoint.store_path({"steps_completed": training.steps}) as (path, checkpoint_id):
        torch.save(training.model.state_dict(), path / "model.pt")
        torch.save({"trial_id": trial_id, **training.state_dict()}, path / "training.pt")
    log.info("checkpoint %s at step %d", checkpoint_id, training.steps)


def load(context, training, trial_id, checkpoint):
    """Goes on from a checkpoint; of another trial's it takes the weights alone."""
    with context.checkpoint.restore_path(checkpoint) as path:
        training.model.load_state_dict(read(path / "model.pt", training.device))
        state = read(path / "training.pt", "cpu")
    if state["trial_id"] == trial_id:
        training.load_state_dict(state)
        log.info("going on at step %d", training.steps)


def read(path, device):
    return torch.load(path, map_location=device, weights_only=True)


def parse_arguments():
    """Options for runs without a cluster; on a cluster the config decides."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", metavar="CHECKPOINT", help="identifier of a checkpoint to go on from")
    parser.add_argument("--checkpoints", metavar="DIR", help="where checkpoints go")
    return parser.parse_args()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=resolute.LOG_FORMAT)
    if torch.cuda.is_available():
        # Same start, same end, as on a CPU; an operation that has no deterministic form says so in the log.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=True)
    info = resolute.get_cluster_info()
    if info is None:
        arguments = parse_arguments()
        new = Training(DEFAULT_HPARAMS, *load_splits(), seed=arguments.seed)
        with resolute.core.init(checkpoint_storage=arguments.checkpoints) as core_context:
            main(core_context, new, 0, checkpoint=arguments.resume, epochs=arguments.epochs)
    else:
        new = Training(info.trial.hparams, *load_splits(), seed=info.trial.trial_seed)
        with resolute.core.init() as core_context:
            main(core_context, new, info.trial.trial_id, checkpoint=info.latest_checkpoint)
