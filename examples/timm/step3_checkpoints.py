"""Step 3: checkpoints and pauses. A trial that is paused, or dies, goes on with the epoch after its last."""

import os

from checkpointing import DeterminedCheckpointSaver, resume
from timm import utils
from training import build, log, parse_args, start, train_one_epoch, validate

import determined as det


def main(core_context):
    args, args_text = parse_args()
    args.local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    start(args)
    log.info("Arguments: %s", args_text)
    parts = build(args)

    info = det.get_cluster_info()
    # Without a cluster there is no information about one.
    latest_checkpoint = None if info is None else info.latest_checkpoint
    trial_id = -1 if info is None else info.trial.trial_id
    start_epoch = resume(
        core_context, parts, latest_checkpoint=latest_checkpoint, otherwise=args.resume, trial_id=trial_id
    )
    log.info("Starting with epoch %d", start_epoch)

    saver = None
    if args.rank == 0:
        saver = DeterminedCheckpointSaver(
            core_context,
            trial_id,
            len(parts.loader_train),
            model=parts.bare_model,
            optimizer=parts.optimizer,
            args=args,
            checkpoint_dir=utils.get_outdir(args.output),
            decreasing=True,
        )

    for epoch in range(start_epoch, args.epochs):
        train_metrics = train_one_epoch(epoch, parts, args)
        eval_metrics = validate(parts, args)
        parts.scheduler.step(epoch + 1)
        latest_batch = len(parts.loader_train) * (epoch + 1)
        if args.rank == 0:
            core_context.train.report_training_metrics(latest_batch=latest_batch, metrics=train_metrics)
            core_context.train.report_validation_metrics(
                latest_batch=latest_batch,
                metrics={"val_" + name: value for name, value in eval_metrics.items()},
            )
        if saver is not None:
            saver.save_checkpoint(epoch, metric=eval_metrics["loss"])
        if core_context.preempt.should_preempt():
            # The checkpoint of this epoch is safe; whoever asked for the slot shall have it.
            return


if __name__ == "__main__":
    utils.setup_default_logging()
    distributed = det.core.DistributedContext.from_torch_distributed()
    with det.core.init(distributed=distributed) as core_context:
        main(core_context)
