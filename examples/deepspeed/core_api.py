"""A loop of one's own around DeepSpeed's engine, with the Core API.

Every rank has a part of each checkpoint: of the engine it saves and loads what is its own.
"""

import logging
from itertools import islice

import deepspeed
import torch
from data import load_splits
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler

import determined as det

CONFIG = "ds_config.json"

log = logging.getLogger("core_api")


def build_engine():
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    engine, *_ = deepspeed.initialize(model=model, config=CONFIG)
    return engine


def train_one_epoch(engine, split, epoch, distributed):
    sampler = DistributedSampler(split, distributed.size, distributed.rank, seed=epoch)
    loader = DataLoader(split, engine.train_micro_batch_size_per_gpu(), sampler=sampler)
    # Whole batches only: what the engine has accumulated of half a one is in no checkpoint.
    whole = len(loader) - len(loader) % engine.gradient_accumulation_steps()
    engine.train()
    losses = []
    for images, digits in islice(loader, whole):
        loss = nn.functional.cross_entropy(engine(images.to(engine.device)), digits.to(engine.device))
        engine.backward(loss)
        engine.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def validate(engine, split):
    engine.eval()
    with torch.no_grad():
        images, digits = (tensor.to(engine.device) for tensor in split.tensors)
        return (engine(images).argmax(dim=1) == digits).float().mean().item()


def main(core_context):
    info = det.get_cluster_info()
    distributed = core_context.distributed
    training, validation = load_splits()
    torch.manual_seed(info.trial.trial_seed)
    engine = build_engine()
    epoch = 0
    if info.latest_checkpoint is not None:
        with core_context.checkpoint.restore_path(info.latest_checkpoint) as path:
            _, client_state = engine.load_checkpoint(str(path), tag="engine")
        epoch = client_state["epoch"]
        log.info("resumed with epoch %d", epoch)

    for op in core_context.searcher.operations():
        accuracy = validate(engine, validation) if epoch >= op.length else None
        while epoch < op.length:
            loss = train_one_epoch(engine, training, epoch, distributed)
            accuracy = validate(engine, validation)
            epoch += 1
            steps_completed = engine.global_steps
            if distributed.rank == 0:
                core_context.train.report_training_metrics(
                    steps_completed=steps_completed, metrics={"loss": loss}
                )
                core_context.train.report_validation_metrics(
                    steps_completed=steps_completed, metrics={"accuracy": accuracy}
                )
                op.report_progress(epoch)
            metadata = {"steps_completed": steps_completed}
            with core_context.checkpoint.store_path(metadata, shard=True) as (path, _storage_id):
                engine.save_checkpoint(str(path), tag="engine", client_state={"epoch": epoch})
            if core_context.preempt.should_preempt():
                log.info("stopped after epoch %d", epoch)
                return
        if distributed.rank == 0:
            op.report_completed(accuracy)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    deepspeed.init_distributed()
    with det.core.init(distributed=det.core.DistributedContext.from_deepspeed()) as context:
        main(context)
