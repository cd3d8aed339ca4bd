"""Training with DeepSpeed's engine (ZeRO stage 1): one process for each slot, on one machine or several.

The launcher (see deepspeed.yaml) starts this script once for each slot and says by variables which rank it
is. Each rank holds a part of the optimizer's state, and so has a part of each checkpoint.
"""

import logging
import time

import deepspeed
import torch
from problem import batch_of, build_model
from torch import nn

import determined as det

REPORT_EVERY = 10

log = logging.getLogger("train")


def save(core_context, engine, steps_completed):
    metadata = {"steps_completed": steps_completed}
    with core_context.checkpoint.store_path(metadata, shard=True) as (path, _storage_id):
        engine.save_checkpoint(str(path), tag="state")


def load(core_context, engine, checkpoint):
    with core_context.checkpoint.restore_path(checkpoint) as path:
        engine.load_checkpoint(str(path), tag="state")
    return engine.global_steps


def loss_of(engine, batch):
    inputs, targets = (tensor.to(engine.device) for tensor in batch)
    return nn.functional.mse_loss(engine(inputs), targets)


def main(core_context, info):
    distributed = core_context.distributed
    is_chief = distributed.rank == 0
    hparams = info.trial.hparams
    seed = info.trial.trial_seed
    torch.manual_seed(seed)
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
            loss = loss_of(engine, batch_of(steps_completed, distributed.rank, seed))
            engine.backward(loss)
            engine.step()
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
                    save(core_context, engine, steps_completed)
                    log.info("stopped at step %d", steps_completed)
                    return
                if steps_completed % hparams["checkpoint_every"] == 0:
                    save(core_context, engine, steps_completed)

        with torch.no_grad():
            metrics = {"validation_loss": loss_of(engine, batch_of(step=-1, rank=0, seed=seed)).item()}
        if is_chief:
            core_context.train.report_validation_metrics(steps_completed=steps_completed, metrics=metrics)
            op.report_completed(metrics["validation_loss"])
    save(core_context, engine, steps_completed)
    log.info("finished at step %d", steps_completed)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    deepspeed.init_distributed(dist_backend="nccl" if torch.cuda.is_available() else "gloo")
    with det.core.init(distributed=det.core.DistributedContext.from_deepspeed()) as context:
        main(context, det.get_cluster_info())
