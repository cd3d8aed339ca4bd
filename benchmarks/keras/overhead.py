"""What ResoluteCallback adds to a batch of Keras's ``fit``, beside ``fit`` without it, in one process.

It is compared with two: a plain ``fit``, and one with a callback whose hook of a batch does nothing. Where
no callback has such hooks, Keras passes those of its own history to a thread, which costs more than calling
them in place. Any callback that looks at batches saves that, so that only the second comparison shows what
ours does.

A batch of Keras takes a millisecond and more, and varies by more than the limit from one ``fit`` to the next.
So the model reads the clocks at the begin of each step, and the median of the times between two steps counts
for a ``fit``: it leaves out what the machine or the first batch happened to add. The three run in turns, in
many short rounds, each of which gives a difference; the median of these counts, and it is shown with the
interval in which it lies at 95 %.

All of it is done twice: with a model that trains, and with one whose step only returns its metrics. What the
callback adds is the same for both, and the second varies little, so that its interval must be below the limit
as a whole; that of the first must not be above it.

Shown apart is what the callback's own code takes: its hooks of a batch, called outside of any ``fit``; the
end of an epoch; and a batch after which metrics are reported.
"""

from __future__ import annotations

import itertools
import os
import statistics
import sys
import tempfile
import time
import timeit
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "torch")

MAX_MICROSECONDS = 50.0
ROUNDS = 180
BATCHES = 25
BATCH = 8
REPORTS = 20
CALLS = 1000
PLAIN = "plain fit"
EMPTY = "fit with a callback whose hook does nothing"
OURS = "fit with ResoluteCallback"


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


@dataclass(frozen=True)
class Batch:
    """What the median batch of a ``fit`` took, in microseconds."""

    wall: float
    """By the clock on the wall."""
    work: float
    """Of the processor, by all threads."""


@dataclass(frozen=True)
class Difference:
    """The median of differences, and the interval in which it lies at 95 %."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Difference:
        """From one value a round. The interval is of order statistics: it assumes nothing of the noise."""
        ranked = sorted(values)
        reach = int(0.98 * len(ranked) ** 0.5) + 1
        middle = len(ranked) // 2
        return cls(statistics.median(ranked), ranked[middle - reach], ranked[middle + reach])

    def __str__(self) -> str:
        return f"{self.median:+.1f} us (95 %: {self.low:+.1f} to {self.high:+.1f})"


class Training:
    """A model whose steps read the clocks.

    Args:
        trains: Whether a step trains; else it only returns metrics.
    """

    def __init__(self, *, trains: bool) -> None:
        import keras
        import numpy as np

        stamps: list[tuple[int, int]] = []

        class Stamped(keras.Sequential):  # type: ignore[misc, unused-ignore]  # without Keras it is Any
            def train_step(self, data: Any) -> Any:
                stamps.append((time.perf_counter_ns(), time.process_time_ns()))
                return super().train_step(data) if trains else self.get_metrics_result()

        self._stamps = stamps
        self._x = np.random.RandomState(0).rand(BATCH * BATCHES, 16).astype("float32")
        self._y = self._x.sum(axis=1, keepdims=True)
        self._model = Stamped(
            [keras.Input((16,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)]
        )
        self._model.compile(optimizer="sgd", loss="mse", metrics=["mae"])

    def fit(self, callbacks: list[Any]) -> Batch:
        """Trains an epoch."""
        self._stamps.clear()
        self._model.fit(
            self._x, self._y, batch_size=BATCH, epochs=1, shuffle=False, verbose=0, callbacks=callbacks
        )
        times = [
            (after[0] - before[0], after[1] - before[1]) for before, after in itertools.pairwise(self._stamps)
        ]
        wall, work = (statistics.median(each[k] for each in times) / 1e3 for k in (0, 1))
        return Batch(wall=wall, work=work)


def rounds_of(training: Training, context: Any, ours: Any) -> list[dict[str, Batch]]:
    """The three in turns: each goes first, second and last equally often."""
    import keras

    class Idle(keras.callbacks.Callback):  # type: ignore[misc, unused-ignore]  # without Keras it is Any
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            """Does nothing."""

    found = []
    for number in range(ROUNDS):
        variants: dict[str, list[Any]] = {
            PLAIN: [],
            EMPTY: [Idle()],
            OURS: [ours(context, None, number, checkpoint_epochs=0)],
        }
        orders = [*itertools.permutations(variants)]
        found.append({name: training.fit(variants[name]) for name in orders[number % len(orders)]})
    return found


def occasional(training: Training, context: Any, ours: Any) -> tuple[float, float]:
    """What the end of an epoch, and a batch with a report, take in the callback: medians, in microseconds."""
    taken: dict[str, list[float]] = {"epoch": [], "report": []}

    class Timed(ours):  # type: ignore[misc]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            begin = time.perf_counter()
            super().on_train_batch_end(batch, logs)
            taken["report"].append(time.perf_counter() - begin)

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            begin = time.perf_counter()
            super().on_epoch_end(epoch, logs)
            taken["epoch"].append(time.perf_counter() - begin)

    for number in range(REPORTS):
        callback = Timed(context, None, -number, train_metrics_report_period=1, checkpoint_epochs=0)
        training.fit([callback])
    epoch, report = (statistics.median(taken[name]) * 1e6 for name in ("epoch", "report"))
    return epoch, report


def hooks_alone(context: Any, ours: Any) -> float:
    """What the hooks of a batch without a report take, in microseconds."""
    callback = ours(context, None, "alone", checkpoint_epochs=0)
    callback.set_params({"epochs": 1, "steps": None, "verbose": 0})
    batches, logs = itertools.count(), {"loss": 1.0, "mae": 2.0}

    def batch() -> None:
        number = next(batches)
        callback.on_train_batch_begin(number, logs)
        callback.on_train_batch_end(number, logs)

    return statistics.median(timeit.repeat(batch, number=CALLS, repeat=REPORTS)) / CALLS * 1e6


def main() -> int:
    import keras

    from resolute import core
    from resolute.keras import ResoluteCallback

    class BatchesOnly(ResoluteCallback):
        """Makes no checkpoint at the end: that is no part of a batch."""

        def on_train_end(self, logs: Any = None) -> None:
            """Does nothing."""

    if keras.backend.backend() == "torch":
        import torch

        torch.set_num_threads(1)
    met = []
    with tempfile.TemporaryDirectory() as directory, core.init(checkpoint_storage=directory) as context:
        for title, trains in (("a step that trains", True), ("a step that only returns metrics", False)):
            training = Training(trains=trains)
            training.fit([])
            differences = compared(title, rounds_of(training, context, BatchesOnly))
            met += [(one.low if trains else one.high) <= MAX_MICROSECONDS for one in differences]
        epoch, report = occasional(training, context, BatchesOnly)
        hooks = hooks_alone(context, BatchesOnly)
    say(
        f"in the callback: the hooks of a batch {hooks:.1f} us; with a report {report:.0f} us; the end of an "
        f"epoch {epoch:.0f} us"
    )
    return 0 if all(met) else 1


def compared(title: str, rounds: list[dict[str, Batch]]) -> list[Difference]:
    """Shows what rounds of a model took, and returns what the callback added to the work of a batch."""
    wall, work = (
        statistics.median(getattr(each[PLAIN], kind) for each in rounds) for kind in ("wall", "work")
    )
    say(f"{title}, {PLAIN}: {work:.0f} us of the processor a batch ({wall:.0f} us on the wall)")
    found = []
    for base in (PLAIN, EMPTY):
        work, wall = (
            Difference.of([getattr(each[OURS], kind) - getattr(each[base], kind) for each in rounds])
            for kind in ("work", "wall")
        )
        say(f"  {OURS}, beside {base}: {work} of the processor a batch; on the wall {wall}")
        found.append(work)
    return found


if __name__ == "__main__":
    sys.exit(main())
