"""Small models of Keras 3 on the torch backend, with all that a resume could lose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
from support.training.trials import Recorder

from resolute import core
from resolute.keras import ResoluteCallback

RECORDS = 40
BATCH = 8
BATCHES = RECORDS // BATCH


def data() -> tuple[Any, Any]:
    """Points and the sums of their coordinates."""
    x = np.random.RandomState(3).rand(RECORDS, 4).astype("float32")
    return x, x.sum(axis=1, keepdims=True)


def line(inputs: int = 4, *, accumulation: int | None = None) -> Any:
    """A model with dropout, normalization and momentum, always with the same weights."""
    keras.utils.set_random_seed(11)
    layers = [
        keras.Input((inputs,)),
        keras.layers.Dense(8, activation="relu"),
        keras.layers.BatchNormalization(),
    ]
    model = keras.Sequential([*layers, keras.layers.Dropout(0.3), keras.layers.Dense(1)])
    optimizer = keras.optimizers.Adam(0.01, gradient_accumulation_steps=accumulation)
    model.compile(optimizer=optimizer, loss="mse", metrics=["mae"])
    return model


def weights(model: Any) -> list[Any]:
    """All numbers of a model and its optimizer."""
    return [
        np.array(variable) for variable in [*model.get_weights(), *map(to_numpy, model.optimizer.variables)]
    ]


def to_numpy(variable: Any) -> Any:
    """The value of a variable."""
    return keras.ops.convert_to_numpy(variable)


def same(left: list[Any], right: list[Any]) -> bool:
    """Whether all numbers are equal to the bit."""
    return len(left) == len(right) and all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


def fit(context: core.Context, checkpoint: str | None = None, *, epochs: int = 4, **options: Any) -> Any:
    """Trains a new model with the callback, of arrays or a ``loader``; returns it and what was reported."""
    context.train._reporter = recorder = Recorder()
    if loader := options.pop("loader", None):
        records: tuple[Any, ...] = (loader,)
        model = line(inputs=3, accumulation=options.pop("accumulation", None))
        fit_options: dict[str, Any] = {"verbose": 0}
    else:
        model, records = line(), data()
        fit_options = {"validation_data": records, "batch_size": BATCH, "verbose": 0}
    fit_options |= {name: options.pop(name) for name in ("verbose", "shuffle") if name in options}
    told = options.pop("after_batch", lambda _: None)
    callback = ResoluteCallback(context, checkpoint, options.pop("continue_id", 1), **options)
    teller = keras.callbacks.LambdaCallback(on_train_batch_end=lambda *_, **__: told(callback._steps + 1))
    model.fit(*records, epochs=epochs, callbacks=[teller, callback], **fit_options)
    return model, recorder


def run(directory: Path, checkpoint: str | None = None, **options: Any) -> Any:
    """``fit`` off cluster, with checkpoints in a directory."""
    with core.init(checkpoint_storage=str(directory)) as context:
        return fit(context, checkpoint, **options)
