"""The Core API as scripts of 0.38 spell it: no operations; the script knows how long to train.

It says how far it is with `train.report_progress`. A search stops trials that do badly: validation reports
say how long a trial has trained (the config's `time_metric`), and a trial that is stopped sees a preemption.
"""

import json
import logging
import time

import determined as det

log = logging.getLogger("core_api")

EPOCHS = 16


def main(core_context, rate, trial_id, latest_checkpoint):
    weight, epoch = 0.0, 0
    if latest_checkpoint is not None:
        weight, epoch = load(core_context, latest_checkpoint, trial_id)

    while epoch < EPOCHS:
        weight += rate * (1.0 - weight)
        time.sleep(0.05)
        epoch += 1
        loss = abs(1.0 - weight)
        core_context.train.report_training_metrics(steps_completed=epoch, metrics={"loss": loss})
        core_context.train.report_validation_metrics(
            steps_completed=epoch, metrics={"val_loss": loss, "epochs": epoch}
        )
        core_context.train.report_progress(epoch / EPOCHS)
        save(core_context, weight, epoch, trial_id)
        if core_context.preempt.should_preempt():
            log.info("asked to stop after epoch %d", epoch)
            return


def save(core_context, weight, epoch, trial_id):
    with core_context.checkpoint.store_path({"steps_completed": epoch}) as (path, _):
        state = {"weight": weight, "epoch": epoch, "trial_id": trial_id}
        path.joinpath("state.json").write_text(json.dumps(state))


def load(core_context, checkpoint, trial_id):
    with core_context.checkpoint.restore_path(checkpoint) as path:
        state = json.loads(path.joinpath("state.json").read_text())
    return state["weight"], state["epoch"] if state["trial_id"] == trial_id else 0


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    cluster = det.get_cluster_info()
    with det.core.init() as context:
        if cluster is None:
            main(context, 0.5, 0, None)
        else:
            main(context, cluster.trial.hparams["rate"], cluster.trial.trial_id, cluster.latest_checkpoint)
