"""Step 4: hyperparameters. The search chooses them, and decides how long each trial trains."""

import argparse
import os

from checkpointing import DeterminedCheckpointSaver, resume
from timm import utils
from training import build, log, parse_args, start, train_one_epoch, validate

import determined as det


def main(core_context):
    info = det.get_cluster_info()
    # What the command line says wins over hyperparameters, and those win over defaults.
    hparams = argparse.Namespace(**({} if info is None else info.trial.hparams))
    args, args_text = parse_args(hparams)
    args.local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    start(args)
    log.info("Arguments and hyperparameters: %s", args_text)
    parts = build(args)

    latest_checkpoint = None if info is None else info.latest_checkpoint
    trial_id = -1 if info is None else info.trial.trial_id
    start_epoch = resume(
        core_context, parts, latest_checkpoint=latest_checkpoint, otherwise=args.resume, trial_id=trial_id
    )

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

    next_epoch = start_epoch
    for op in core_context.searcher.operations():
        eval_metrics = validate(parts, args) if next_epoch >= op.length else None
        for epoch in range(next_epoch, op.length):
            train_metrics = train_one_epoch(epoch, parts, args)
            eval_metrics = validate(parts, args)
            parts.scheduler.step(epoch + 1)
            latest_batch = len(parts.loader_train) * (epoch + 1)
            if args.rank == 0:
                op.report_progress(epoch + 1)
                core_context.train.report_training_metrics(latest_batch=latest_batch, metrics=train_metrics)
                core_context.train.report_validation_metrics(
                    latest_batch=latest_batch,
                    metrics={"val_" + name: value for name, value in eval_metrics.items()},
                )
            if saver is not None:
                saver.save_checkpoint(epoch, metric=eval_metrics["loss"])
            if core_context.preempt.should_preempt():
                return
        next_epoch = op.length
        if args.rank == 0:
            op.report_completed(eval_metrics["loss"])


if __name__ == "__main__":
    utils.setup_default_logging()
    distributed = det.core.DistributedContext.from_torch_distributed()
    with det.core.init(distributed=distributed) as core_context:
        main(core_context)
