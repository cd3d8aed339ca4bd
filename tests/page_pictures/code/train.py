"""A training whose curves look like those of a network, in seconds: what the pictures of the page show."""

# ruff: noqa: ANN001, ANN201 - written as users write their scripts

import json
import logging
import math
import random
import sys
import time

import resolute

STEPS_PER_EPOCH = 40
log = logging.getLogger("vision")


def main(context, info):
    hparams = info.trial.hparams
    state = load(context, info.latest_checkpoint)
    noise = random.Random(info.trial.trial_id * 1000 + state["steps"])
    context.train.set_status("training")
    for op in context.searcher.operations():
        while state["steps"] < op.length * STEPS_PER_EPOCH:
            state["steps"] += 1
            report_step(context, hparams, state["steps"], noise)
            if state["steps"] % STEPS_PER_EPOCH == 0:
                accuracy = validate(context, hparams, state["steps"], noise)
                op.report_progress(state["steps"] // STEPS_PER_EPOCH)
                save(context, state)
                if context.preempt.should_preempt():
                    return
        op.report_completed(accuracy)


def report_step(context, hparams, step, noise):
    epoch, at = divmod(step - 1, STEPS_PER_EPOCH)
    loss = 2.2 * quality(hparams)[1] ** step + 0.35 - 0.3 * quality(hparams)[0] + noise.gauss(0, 0.03)
    # Like the bars that libraries print: each state returns the carriage.
    sys.stderr.write(f"\repoch {epoch + 1}: {'█' * (at // 4):<10}| {at + 1}/{STEPS_PER_EPOCH}")
    if at + 1 == STEPS_PER_EPOCH:
        sys.stderr.write("\n")
    if step % 4 == 0:
        context.train.report_training_metrics(step, {"loss": loss, "lr": hparams["lr"] * 0.99**step})
    time.sleep(0.01)


def validate(context, hparams, step, noise):
    best, decay = quality(hparams)
    accuracy = best * (1 - decay**step) + noise.gauss(0, 0.004)
    loss = 1.6 * (1 - accuracy) + 0.08
    context.train.report_validation_metrics(step, {"accuracy": accuracy, "loss": loss})
    log_media(context, step, accuracy, noise)
    log.info("step %d: accuracy %.4f, loss %.4f", step, accuracy, loss)
    if accuracy < 0.5:
        log.warning(
            "\x1b[33maccuracy is below one half\x1b[0m; the learning rate %.2g may be too high", hparams["lr"]
        )
    return accuracy


def log_media(context, step, accuracy, noise):
    """One of each kind: a picture that becomes sharper, weights that spread, and what the model errs on."""
    waves = [[0.5 + 0.5 * math.sin(x * y * accuracy / 12) for x in range(32)] for y in range(32)]
    spots = [[noise.random() * (1 - accuracy) + (x - 16) ** 2 / 256 for x in range(32)] for y in range(32)]
    train = context.train
    train.log_images("samples", [waves, spots], steps_completed=step, captions=["waves", "spots"])
    weights = [noise.gauss(0, 0.1 + accuracy) for _ in range(500)]
    train.log_histogram("weights", weights, steps_completed=step)
    train.log_text("answer", f"After {step} steps I see waves.", steps_completed=step)
    errors = [
        {"label": label, "guess": (label + 3) % 10, "count": noise.randrange(40)} for label in range(10)
    ]
    train.log_table("errors", errors, steps_completed=step)
    tone = [math.sin(at * (0.1 + accuracy / 10)) for at in range(4000)]
    train.log_audio("tone", tone, steps_completed=step, sample_rate=8000)


def quality(hparams):
    """Where a training with these hyperparameters ends, and how much of the way is left after each step."""
    far = abs(math.log10(hparams["lr"]) + 2.4)
    best = (
        0.985
        - 0.12 * far**2
        - 0.15 * abs(hparams["dropout"] - 0.25)
        - (0.02 if hparams["optimizer"] == "sgd" else 0)
    )
    return max(best, 0.1), 0.97 + 0.004 * far


def save(context, state):
    with context.checkpoint.store_path({"steps_completed": state["steps"]}) as (path, _):
        (path / "state.json").write_text(json.dumps(state))
        (path / "weights.bin").write_bytes(bytes(200_000))


def load(context, checkpoint):
    if checkpoint is None:
        return {"steps": 0}
    with context.checkpoint.restore_path(checkpoint) as path:
        return json.loads((path / "state.json").read_text())


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(levelname)s:%(name)s: %(message)s")
    cluster_info = resolute.get_cluster_info()
    with resolute.core.init() as core_context:
        main(core_context, cluster_info)
