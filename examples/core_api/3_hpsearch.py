"""Stage 3: let a search decide the hyperparameters, and how long each trial trains.

What is new since stage 2: hyperparameters, and the loop over the search's operations: train to the length
that the operation names, validate, report. Lengths are absolute: steps that were trained before count.
"""

import json
import logging
import time

import determined as det

log = logging.getLogger("core_api")


def save_state(core_context, trial_id, steps_completed, x):
    metadata = {"steps_completed": steps_completed}
    with core_context.checkpoint.store_path(metadata) as (directory, _storage_id):
        state = {"trial_id": trial_id, "steps_completed": steps_completed, "x": x}
        directory.joinpath("state.json").write_text(json.dumps(state))


def load_state(core_context, trial_id, checkpoint):
    with core_context.checkpoint.restore_path(checkpoint) as directory:
        state = json.loads(directory.joinpath("state.json").read_text())
    if state["trial_id"] == trial_id:
        return state["x"], state["steps_completed"]
    return state["x"], 0


def main(core_context, trial_id, latest_checkpoint, increment_by):
    x = 0
    steps_completed = 0
    if latest_checkpoint is not None:
        x, steps_completed = load_state(core_context, trial_id, latest_checkpoint)
    last_saved = steps_completed

    # NEW: one operation after another, until the search has none left for this trial. If it wants more of the
    # trial later, it starts it again from its last checkpoint.
    for op in core_context.searcher.operations():
        while steps_completed < op.length:
            x += increment_by  # NEW: a hyperparameter at work
            time.sleep(0.02)
            steps_completed += 1
            if steps_completed % 10 == 0:
                log.info("after %d steps x is %d", steps_completed, x)
                core_context.train.report_training_metrics(steps_completed=steps_completed, metrics={"x": x})
                op.report_progress(steps_completed)  # NEW: for the progress bar; it decides nothing
                save_state(core_context, trial_id, steps_completed, x)
                last_saved = steps_completed
                if core_context.preempt.should_preempt():
                    return

        # NEW: this is what the search compares trials by. Without it the next operation cannot come.
        core_context.train.report_validation_metrics(steps_completed=steps_completed, metrics={"x": x})
        op.report_completed(x)

    # NEW: lengths are the search's choice, so the end need not fall on a multiple of ten.
    if last_saved != steps_completed:
        save_state(core_context, trial_id, steps_completed, x)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)

    info = det.get_cluster_info()
    on_cluster = info is not None
    trial = info.trial.trial_id if on_cluster else 0
    checkpoint_to_load = info.latest_checkpoint if on_cluster else None
    hparams = info.trial.hparams if on_cluster else {"increment_by": 1}  # NEW

    with det.core.init() as core_context:
        main(core_context, trial, checkpoint_to_load, hparams["increment_by"])
