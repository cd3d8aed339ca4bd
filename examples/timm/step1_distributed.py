"""Step 1: several processes. The launcher says by a variable which GPU is whose; nothing else is new."""

import os

from timm import utils
from timm.models import resume_checkpoint
from training import build, log, parse_args, start, train_one_epoch, validate


def main():
    args, args_text = parse_args()
    args.local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    start(args)
    log.info("Arguments: %s", args_text)
    parts = build(args)

    start_epoch = 0
    if args.resume:
        start_epoch = resume_checkpoint(parts.bare_model, args.resume, optimizer=parts.optimizer)
        parts.scheduler.step(start_epoch)

    saver = None
    if args.rank == 0:
        saver = utils.CheckpointSaver(
            model=parts.bare_model,
            optimizer=parts.optimizer,
            args=args,
            checkpoint_dir=utils.get_outdir(args.output),
            decreasing=True,
        )

    for epoch in range(start_epoch, args.epochs):
        train_one_epoch(epoch, parts, args)
        eval_metrics = validate(parts, args)
        parts.scheduler.step(epoch + 1)
        if saver is not None:
            best_metric, best_epoch = saver.save_checkpoint(epoch, metric=eval_metrics["loss"])
            log.info("Best loss: %.4f (epoch %d)", best_metric, best_epoch)


if __name__ == "__main__":
    utils.setup_default_logging()
    main()
