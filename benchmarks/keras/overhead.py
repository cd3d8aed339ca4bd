"""What DeterminedCallback adds to a batch of Keras's ``fit``, beside ``fit`` without it, in one process.

It is compared with two: a plain ``fit``, and one with a callback that does nothing. Without any callback
Keras calls the hooks of its own history in a thread, which costs more than calling them in place: any
callback saves that, so that only the second comparison shows what ours does.

The three run in turns; each round gives differences, and their medians count. Epochs are long and checkpoints
are made at the end only, so that what is measured is the work of a batch.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "torch")

MAX_MICROSECONDS = 50.0
ROUNDS = 9
BATCHES = 200
BATCH = 8
PLAIN = "plain fit"
EMPTY = "fit with a callback that does nothing"
OURS = "fit with DeterminedCallback"


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def seconds_a_batch(model: Any, x: Any, y: Any, callbacks: list[Any]) -> tuple[float, float]:
    """By the clock on the wall, and of the processor."""
    wall, work = time.perf_counter(), time.process_time()
    model.fit(x, y, batch_size=BATCH, epochs=1, shuffle=False, verbose=0, callbacks=callbacks)
    return (time.perf_counter() - wall) / BATCHES, (time.process_time() - work) / BATCHES


def main() -> int:
    import keras
    import numpy as np

    from resolute import core
    from resolute.keras import DeterminedCallback

    class BatchesOnly(DeterminedCallback):
        """Makes no checkpoint at the end: that is no part of a batch."""

        def on_train_end(self, logs: Any = None) -> None:
            """Does nothing."""

    if keras.backend.backend() == "torch":
        import torch

        torch.set_num_threads(1)
    x = np.random.RandomState(0).rand(BATCH * BATCHES, 16).astype("float32")
    y = x.sum(axis=1, keepdims=True)
    model = keras.Sequential(
        [keras.Input((16,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)]
    )
    model.compile(optimizer="sgd", loss="mse", metrics=["mae"])
    seconds_a_batch(model, x, y, [])
    rounds: list[dict[str, tuple[float, float]]] = []
    with tempfile.TemporaryDirectory() as directory, core.init(checkpoint_storage=directory) as context:
        for number in range(ROUNDS):
            variants: dict[str, list[Any]] = {
                PLAIN: [],
                EMPTY: [keras.callbacks.Callback()],
                OURS: [BatchesOnly(context, None, number, checkpoint_epochs=0)],
            }
            turn = number % len(variants)
            names = [*variants][turn:] + [*variants][:turn]
            rounds.append({name: seconds_a_batch(model, x, y, variants[name]) for name in names})
    wall, work = (statistics.median(each[PLAIN][k] for each in rounds) * 1e6 for k in (0, 1))
    say(f"{PLAIN}: {work:.0f} us of the processor a batch ({wall:.0f} us on the wall)")
    worst = 0.0
    for base in (PLAIN, EMPTY):
        wall, work = (
            statistics.median(each[OURS][k] - each[base][k] for each in rounds) * 1e6 for k in (0, 1)
        )
        say(f"{OURS}, beside {base}: {work:+.1f} us a batch ({wall:+.1f} us on the wall)")
        worst = max(worst, work)
    return 0 if worst <= MAX_MICROSECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
