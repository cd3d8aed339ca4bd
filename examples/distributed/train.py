"""Data-parallel training with torch.distributed: one process for each slot, on one machine or several.

The launcher (see torchrun.yaml) starts this script once for each slot and says by variables which rank it is.
Every rank works on data of its own; gradients are averaged, so all ranks hold the same weights at every step.
"""

import logging
import time

import torch
from torch import distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import determined as det

REPORT_EVERY = 10
BATCH = 32
INPUTS = 16

log = logging.getLogger("train")


def batch_of(step, rank, seed):
    """The batch of one rank at one step, by both alone: a resumed run sees what it would have seen."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + step * 101 + rank)
    inputs = torch.randn(BATCH, INPUTS, generator=generator)
    return inputs, torch.sin(inputs.sum(dim=1, keepdim=True))


def build_model():
    return nn.Sequential(nn.Linear(INPUTS, 32), nn.Tanh(), nn.Linear(32, 1))


def save(core_context, model, optimizer, steps_completed):
    # The weights are the same everywhere, so the chief saves alone; ranks wait for it at the next step.
    if core_context.distributed.rank == 0:
        with core_context.checkpoint.store_path({"steps_completed": steps_completed}) as (path, _storage_id):
            state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save({**state, "steps_completed": steps_completed}, path / "state.pt")


def load(core_context, model, optimizer, checkpoint):
    with core_context.checkpoint.restore_path(checkpoint) as path:
        state = torch.load(path / "state.pt")
    model.module.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["steps_completed"]


def validate(model, seed):
    inputs, targets = batch_of(step=-1, rank=0, seed=seed)
    with torch.no_grad():
        return nn.functional.mse_loss(model.module(inputs), targets).item()


def main(core_context, info):
    distributed = core_context.distributed
    is_chief = distributed.rank == 0
    hparams = info.trial.hparams
    torch.manual_seed(info.trial.trial_seed)
    model = DistributedDataParallel(build_model())
    optimizer = torch.optim.Adam(model.parameters(), lr=hparams["learning_rate"])
    steps_completed = 0
    if info.latest_checkpoint is not None:
        steps_completed = load(core_context, model, optimizer, info.latest_checkpoint)
        log.info("resumed at step %d", steps_completed)

    for op in core_context.searcher.operations():
        while steps_completed < op.length:
            inputs, targets = batch_of(steps_completed, distributed.rank, info.trial.trial_seed)
            loss = nn.functional.mse_loss(model(inputs), targets)
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
            metrics = {"validation_loss": validate(model, info.trial.trial_seed)}
            core_context.train.report_validation_metrics(steps_completed=steps_completed, metrics=metrics)
            op.report_completed(metrics["validation_loss"])
    save(core_context, model, optimizer, steps_completed)
    log.info("finished at step %d", steps_completed)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        with det.core.init(distributed=det.core.DistributedContext.from_torch_distributed()) as context:
            main(context, det.get_cluster_info())
    finally:
        dist.destroy_process_group()
