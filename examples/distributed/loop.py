"""The training loop of every rank, whichever framework averages the gradients.

Each rank works on data of its own. Their gradients are averaged, so all ranks hold the same weights at every
step, and whatever concerns the trial as a whole (reports, checkpoints, operations) is the chief's: rank 0.
"""

import logging
import time

import torch
from problem import batch_of, validate
from torch import nn

REPORT_EVERY = 10

log = logging.getLogger("train")


def save(core_context, model, optimizer, steps_completed):
    # The weights are the same everywhere, so the chief saves alone; ranks wait for it at the next step.
    if core_context.distributed.rank == 0:
        with core_context.checkpoint.store_path({"steps_completed": steps_completed}) as (path, _storage_id):
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save({**state, "steps_completed": steps_completed}, path / "state.pt")


def load(core_context, model, optimizer, checkpoint):
    with core_context.checkpoint.restore_path(checkpoint) as path:
        state = torch.load(path / "state.pt")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["steps_completed"]


def train(core_context, info, *, model, optimizer, parallel):
    """Trains to the end of what the search asks for, or until the run is asked to stop.

    ``model`` is the plain one, which is saved; ``parallel`` is what the framework made of it, to be called.
    """
    distributed = core_context.distributed
    is_chief = distributed.rank == 0
    hparams = info.trial.hparams
    seed = info.trial.trial_seed
    steps_completed = 0
    if info.latest_checkpoint is not None:
        steps_completed = load(core_context, model, optimizer, info.latest_checkpoint)
        log.info("resumed at step %d", steps_completed)

    for op in core_context.searcher.operations():
        while steps_completed < op.length:
            inputs, targets = batch_of(steps_completed, distributed.rank, seed)
            loss = nn.functional.mse_loss(parallel(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps_completed += 1
            time.sleep(hparams["seconds_per_step"])
            if steps_completed % REPORT_EVERY == 0:
                if is_chief:
                    core_context.train.report_training_metrics(
                        steps_completed=steps_completed, metrics={"loss": loss.item()}
                    )
                    op.report_progress(steps_completed)
                # Every rank asks at the same step and gets the same answer.
                if core_context.preempt.should_preempt():
                    save(core_context, model, optimizer, steps_completed)
                    log.info("stopped at step %d", steps_completed)
                    return
                if steps_completed % hparams["checkpoint_every"] == 0:
                    save(core_context, model, optimizer, steps_completed)

        if is_chief:
            metrics = {"validation_loss": validate(model, seed)}
            core_context.train.report_validation_metrics(steps_completed=steps_completed, metrics=metrics)
            op.report_completed(metrics["validation_loss"])
    save(core_context, model, optimizer, steps_completed)
    log.info("finished at step %d", steps_completed)
