"""Stage 2: checkpoint, stop when asked, and go on from there.

What is new since stage 1: saving, loading, and asking whether to stop.

Two ways lead back into a script, and they differ in what is kept. A trial that was paused, or that crashed,
goes on where it was: weights and position. A new trial that starts from somebody else's checkpoint takes the
weights alone and counts from zero. The trial's number, kept in the checkpoint, tells which it is.
"""

import json
import logging
import time

import determined as det

log = logging.getLogger("core_api")


# NEW: everything that a later process needs, in one file.
def save_state(core_context, trial_id, steps_completed, x):
    metadata = {"steps_completed": steps_completed}
    with core_context.checkpoint.store_path(metadata) as (directory, _storage_id):
        state = {"trial_id": trial_id, "steps_completed": steps_completed, "x": x}
        directory.joinpath("state.json").write_text(json.dumps(state))


# NEW: returns the weight, and the position to go on from.
def load_state(core_context, trial_id, checkpoint):
    with core_context.checkpoint.restore_path(checkpoint) as directory:
        state = json.loads(directory.joinpath("state.json").read_text())
    if state["trial_id"] == trial_id:
        return state["x"], state["steps_completed"]
    return state["x"], 0  # another trial's checkpoint: keep the weight, start counting anew


def main(core_context, trial_id, latest_checkpoint):
    x = 0
    starting_batch = 0

    # NEW: go on from a checkpoint if there is one.
    if latest_checkpoint is not None:
        x, starting_batch = load_state(core_context, trial_id, latest_checkpoint)
        log.info("going on from step %d with x = %d", starting_batch, x)

    for batch in range(starting_batch, 100):
        x += 1
        time.sleep(0.05)
        steps_completed = batch + 1
        if steps_completed % 10 == 0:
            log.info("after %d steps x is %d", steps_completed, x)
            core_context.train.report_training_metrics(steps_completed=steps_completed, metrics={"x": x})
            # NEW: save, and only then look whether to leave: what was done is safe by then.
            save_state(core_context, trial_id, steps_completed, x)
            if core_context.preempt.should_preempt():
                log.info("asked to stop at step %d", steps_completed)
                return

    core_context.train.report_validation_metrics(steps_completed=100, metrics={"x": x})


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)

    # NEW: what the cluster knows of this trial. Read it here, once, and hand plain values down: all that
    # is called then runs on a cluster and without one.
    info = det.get_cluster_info()
    on_cluster = info is not None
    trial = info.trial.trial_id if on_cluster else 0
    checkpoint_to_load = info.latest_checkpoint if on_cluster else None

    with det.core.init() as core_context:
        main(core_context, trial, checkpoint_to_load)
