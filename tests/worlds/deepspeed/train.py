"""A plain script under DeepSpeed's launcher: ZeRO stage 1, each rank with a shard of the checkpoint."""

from __future__ import annotations

import logging
import time
from typing import Any

import deepspeed
import torch
from problem import batch_of, build_model  # type: ignore[import-not-found]  # submitted beside it
from torch import nn

import determined as det  # type: ignore[import-not-found]  # on the path of every trial

REPORT_EVERY = 10

log = logging.getLogger("train")


def save(core_context: Any, engine: Any, steps_completed: int) -> None:
    metadata = {"steps_completed": steps_completed}
    with core_context.checkpoint.store_path(metadata, shard=True) as (path, _storage_id):
        engine.save_checkpoint(str(path), tag="state")


def load(core_context: Any, engine: Any, checkpoint: str) -> int:
    with core_context.checkpoint.restore_path(checkpoint) as path:
        engine.load_checkpoint(str(path), tag="state")
    return int(engine.global_steps)


def main(core_context: Any, info: Any) -> None:
    hparams = info.trial.hparams
    torch.manual_seed(info.trial.trial_seed)
    model = build_model()
    config = {
        "train_micro_batch_size_per_gpu": 32,
        "zero_optimization": {"stage": 1},
        # torch's own, since DeepSpeed's would have to be compiled.
        "optimizer": {"type": "Adam", "params": {"lr": hparams["learning_rate"], "torch_adam": True}},
    }
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    steps_completed = 0
    if info.latest_checkpoint is not None:
        steps_completed = load(core_context, engine, info.latest_checkpoint)
        log.info("resumed at step %d", steps_completed)

    for op in core_context.searcher.operations():
        while steps_completed < op.length:
            inputs, targets = batch_of(steps_completed, core_context.distributed.rank, info.trial.trial_seed)
            loss = nn.functional.mse_loss(engine(inputs), targets)
            engine.backward(loss)
            engine.step()
            steps_completed += 1
            time.sleep(hparams["seconds_per_step"])
            if steps_completed % REPORT_EVERY == 0:
                if core_context.distributed.rank == 0:
                    core_context.train.report_training_metrics(steps_completed, {"loss": loss.item()})
                if core_context.preempt.should_preempt():
                    save(core_context, engine, steps_completed)
                    log.info("stopped at step %d", steps_completed)
                    return
                if steps_completed % hparams["checkpoint_every"] == 0:
                    save(core_context, engine, steps_completed)
        if core_context.distributed.rank == 0:
            core_context.train.report_validation_metrics(steps_completed, {"validation_loss": loss.item()})
            op.report_completed(loss.item())
    save(core_context, engine, steps_completed)
    log.info("finished at step %d", steps_completed)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    deepspeed.init_distributed(dist_backend="gloo")
    with det.core.init(distributed=det.core.DistributedContext.from_deepspeed()) as context:
        main(context, det.get_cluster_info())
