"""DeterminedCallback of 0.38 in Keras's own fit, with its TensorBoard callback."""

import argparse

import keras
import numpy as np

import determined as det
from determined.keras import DeterminedCallback, TensorBoard


class MyCallback(DeterminedCallback):
    def save_model(self, model, path, distributed):
        if distributed.get_rank() == 0:
            model.save_weights(path + ".weights.h5")

    def load_model(self, model, path, distributed):
        model.load_weights(path + ".weights.h5")


def main(epochs):
    info = det.get_cluster_info()
    if info and info.task_type == "TRIAL":
        hparams, checkpoint, continue_id = info.trial.hparams, info.latest_checkpoint, info.trial.trial_id
    else:
        hparams, checkpoint, continue_id = {"lr": 0.1}, None, "local-train-task"
    with det.core.init() as core_context:
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, activation="sigmoid")])
        model.compile(keras.optimizers.Adam(hparams["lr"]), "binary_crossentropy", metrics=["accuracy"])
        x = np.random.default_rng(0).random((32, 2)).astype("float32")
        y = (x[:, 0] > x[:, 1]).astype("float32")
        callback = MyCallback(
            core_context, checkpoint, continue_id, train_metrics_report_period=2, checkpoint_epochs=2
        )
        board = TensorBoard(core_context, update_freq="batch")
        model.fit(
            x, y, batch_size=8, epochs=epochs, validation_data=(x, y), verbose=2, callbacks=[callback, board]
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    main(parser.parse_args().epochs)
