"""Keras's fit as a trial: here with `python3 train.py`, or on a cluster."""

import logging
import os

os.environ.setdefault("KERAS_BACKEND", "torch")  # or tensorflow, or jax: before keras is imported

import keras
import numpy as np

import resolute
from resolute.keras import ResoluteCallback

DEFAULT_HPARAMS = {"lr": 0.01, "hidden": 32}
EPOCHS = 3


def make_data(count, *, seed):
    """Points inside and outside of a circle. Replace it by your data."""
    points = np.random.default_rng(seed).normal(size=(count, 2)).astype("float32")
    return points, (np.linalg.norm(points, axis=1) > 1.2).astype("int64")


def make_model(hparams):
    model = keras.Sequential(
        [
            keras.Input((2,)),
            keras.layers.Dense(hparams["hidden"], activation="relu"),
            keras.layers.Dense(2, activation="softmax"),
        ]
    )
    optimizer = keras.optimizers.Adam(hparams["lr"])
    model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def main():
    info = resolute.get_cluster_info()
    hparams = DEFAULT_HPARAMS if info is None else info.trial.hparams
    checkpoint = None if info is None else info.latest_checkpoint
    keras.utils.set_random_seed(0 if info is None else info.trial.trial_seed)
    with resolute.core.init() as context:
        continue_id = "local" if info is None else info.trial.trial_id
        callback = ResoluteCallback(context, checkpoint, continue_id)
        x, y = make_data(512, seed=1)
        make_model(hparams).fit(
            x,
            y,
            batch_size=32,
            epochs=EPOCHS,
            validation_data=make_data(128, seed=2),
            callbacks=[callback],
            verbose=0,
        )


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=resolute.LOG_FORMAT)
    main()
