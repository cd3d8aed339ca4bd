"""What DeterminedCallback adds to a batch of Keras's ``fit``, beside ``fit`` without it, in one process.

The two run in turns; each round gives a difference, and the median of the rounds counts. Epochs are long and
checkpoints are made at the end only, so that what is measured is the work of a batch.
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
    rounds: list[tuple[tuple[float, float], tuple[float, float]]] = []
    with tempfile.TemporaryDirectory() as directory, core.init(checkpoint_storage=directory) as context:
        for number in range(ROUNDS):
            plain: list[Any] = []
            ours = [BatchesOnly(context, None, number, checkpoint_epochs=0)]
            order = [plain, ours] if number % 2 == 0 else [ours, plain]
            times = [seconds_a_batch(model, x, y, callbacks) for callbacks in order]
            rounds.append((times[0], times[1]) if number % 2 == 0 else (times[1], times[0]))
    plain_wall, plain_work = (statistics.median(first[k] for first, _ in rounds) * 1e6 for k in (0, 1))
    wall, work = (statistics.median(second[k] - first[k] for first, second in rounds) * 1e6 for k in (0, 1))
    say(f"plain fit: {plain_work:.0f} us of the processor a batch ({plain_wall:.0f} us on the wall)")
    say(f"with DeterminedCallback: {work:+.1f} us a batch ({wall:+.1f} us on the wall)")
    return 0 if work <= MAX_MICROSECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
