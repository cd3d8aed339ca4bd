"""Keras's fit as a trial: here with `python3 train.py`, or on a cluster."""

import logging
import os

os.environ.setdefault("KERAS_BACKEND", "torch")  # or tensorflow, or jax: before keras is imported

import keras
import numpy as np

import resolute

HPARAMS = {"lr": 0.01, "hidden": 32}
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
    # On a cluster the hyperparameters and the seed are those of the trial.
    with resolute.core.init(hparams=HPARAMS) as context:
        keras.utils.set_random_seed(context.seed)
        x, y = make_data(512, seed=1)
        make_model(context.hparams).fit(
            x,
            y,
            batch_size=32,
            epochs=EPOCHS,
            validation_data=make_data(128, seed=2),
            callbacks=[resolute.keras.ResoluteCallback(context)],
            verbose=0,
        )


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    main()
