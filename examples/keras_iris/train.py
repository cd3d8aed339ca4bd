"""Flowers by Keras's fit and one callback: here with `python3 train.py`, or on a cluster."""

import argparse
import logging

import keras
from sklearn.datasets import load_iris

import resolute
from resolute.keras import ResoluteCallback

DEFAULT_HPARAMS = {"lr": 0.01, "hidden": 16}


def build_model(hparams):
    layers = [keras.Input((4,)), keras.layers.Dense(hparams["hidden"], activation="relu")]
    model = keras.Sequential(
        [*layers, keras.layers.Dropout(0.1), keras.layers.Dense(3, activation="softmax")]
    )
    model.compile(
        optimizer=keras.optimizers.Adam(hparams["lr"]),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    return model


def main(epochs):
    info = resolute.get_cluster_info()
    if info is None:
        hparams, checkpoint, continue_id, seed = DEFAULT_HPARAMS, None, "iris", 0
    else:
        hparams, checkpoint = info.trial.hparams, info.latest_checkpoint
        continue_id, seed = info.trial.trial_id, info.trial.trial_seed
    keras.utils.set_random_seed(seed)
    flowers = load_iris()
    x, y = flowers.data.astype("float32"), flowers.target
    with resolute.core.init() as context:
        callback = ResoluteCallback(context, checkpoint, continue_id, checkpoint_epochs=10)
        model = build_model(hparams)
        # Every fifth flower is for validation.
        held = [number % 5 == 0 for number in range(len(x))]
        trained = [not out for out in held]
        model.fit(
            x[trained],
            y[trained],
            batch_size=16,
            epochs=epochs,
            validation_data=(x[held], y[held]),
            callbacks=[callback],
            verbose=0,
        )


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=resolute.LOG_FORMAT)
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=30)
    main(parser.parse_args().epochs)
