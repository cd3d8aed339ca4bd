"""The Core API as scripts of 0.17 spell it: `latest_batch` for the position, checkpoints with free metadata.

Lengths are epochs, because the script counts epochs: the config gives a bare number.
"""

import logging
import time

import determined as det

BATCHES_PER_EPOCH = 10


def main(core_context, info):
    weight, next_epoch = 0.0, 0
    if info is not None and info.latest_checkpoint is not None:
        with core_context.checkpoint.restore_path(info.latest_checkpoint) as path:
            weight = float(path.joinpath("weight").read_text())
        metadata = core_context.checkpoint.get_metadata(info.latest_checkpoint)
        if metadata["trial_id"] == info.trial.trial_id:
            next_epoch = metadata["latest_batch"] // BATCHES_PER_EPOCH
    rate = info.trial.hparams["rate"] if info is not None else 0.5

    for op in core_context.searcher.operations():
        for epoch in range(next_epoch, op.length):
            for _ in range(BATCHES_PER_EPOCH):
                weight += rate * (1.0 - weight)
                time.sleep(0.01)
            latest_batch = (epoch + 1) * BATCHES_PER_EPOCH
            core_context.train.report_training_metrics(
                latest_batch=latest_batch, metrics={"loss": abs(1.0 - weight)}
            )
            op.report_progress(epoch + 1)
            save(core_context, info, latest_batch, weight)
            if core_context.preempt.should_preempt():
                return
        next_epoch = op.length
        loss = abs(1.0 - weight)
        core_context.train.report_validation_metrics(
            latest_batch=op.length * BATCHES_PER_EPOCH, metrics={"val_loss": loss}
        )
        op.report_completed(loss)


def save(core_context, info, latest_batch, weight):
    trial_id = info.trial.trial_id if info is not None else -1
    metadata = {"latest_batch": latest_batch, "trial_id": trial_id}
    with core_context.checkpoint.store_path(metadata) as (path, _):
        path.joinpath("weight").write_text(str(weight))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    with det.core.init() as context:
        main(context, det.get_cluster_info())
