"""A training loop of your own: here with `python3 train.py`, or on a cluster."""

import logging
import random

import resolute

HPARAMS = {"lr": 0.05}
STEPS, REPORT_EVERY = 200, 20


def main():
    # On a cluster the hyperparameters are those of the trial.
    with resolute.core.init(hparams=HPARAMS) as context:
        done, weight = 0, 0.0
        with context.restore_latest() as path:
            if path:  # the trial was paused or its machine failed: it continues where it stopped
                done, weight = map(float, (path / "state").read_text().split())
        for step in range(int(done) + 1, STEPS + 1):
            # Replace this by your model: it learns the factor 3 from single examples.
            x = random.uniform(-1, 1)
            error = weight * x - 3 * x
            weight -= context.hparams["lr"] * 2 * error * x
            if step % REPORT_EVERY:
                continue
            context.train.report_training_metrics(step, {"loss": error**2})
            context.train.report_validation_metrics(step, {"validation_loss": (weight - 3) ** 2})
            with context.checkpoint.store_path({"steps_completed": step}) as (path, _):
                (path / "state").write_text(f"{step} {weight}")
            if context.preempt.should_preempt():
                return


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    main()
