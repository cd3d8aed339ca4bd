"""A small ``TFKerasTrial`` on the torch backend, with all that a resume could lose."""

from __future__ import annotations

from typing import Any, ClassVar

import keras
import numpy as np
from support.training.keras_models import data

from resolute.keras import TFKerasTrial, TFKerasTrialContext, callbacks
from resolute.trial_errors import InvalidHP


class Noisy(keras.utils.PyDataset):  # type: ignore[misc, unused-ignore]
    """Batches with noise that is drawn when they are read."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.passes = 0

    def __len__(self) -> int:
        return len(data()[0]) // self.size

    def __getitem__(self, index: int) -> Any:
        x, y = data()
        part = slice(index * self.size, (index + 1) * self.size)
        return x[part] + np.random.rand(self.size, 4).astype("float32") * 0.01, y[part]

    def on_epoch_end(self) -> None:
        self.passes += 1


class Hooks(callbacks.Callback):
    """Notes which hooks are called, over all runs of the trial."""

    def __init__(self, called: list[Any]) -> None:
        super().__init__()
        self.called = called
        self.epochs = 0
        self.begun_with: list[Any] = []

    def on_train_begin(self, logs: Any = None) -> None:
        self.begun_with = self.model.get_weights()
        self.epochs = 0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.called.append(("epoch begin", epoch))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.epochs += 1
        self.called.append(("epoch end", epoch, logs))

    def on_train_workload_begin(self, total_batches_trained: int, batches_requested: Any, logs: Any) -> None:
        self.called.append(("workload begin", total_batches_trained, batches_requested))

    def on_train_workload_end(self, total_batches_trained: int, logs: Any) -> None:
        self.called.append(("workload end", total_batches_trained))

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.called.append(("batch begin", batch))

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.called.append(("batch end", batch))

    def on_test_end(self, logs: Any = None) -> None:
        self.called.append(("test end", sorted(logs)))

    def get_state(self) -> Any:
        return self.epochs

    def load_state(self, state: Any) -> None:
        self.epochs = state


class LineTrial(TFKerasTrial):
    """Dropout, normalization, momentum, noisy data and a callback with a state."""

    made: ClassVar[list[LineTrial]] = []
    reject = False

    def __init__(self, context: TFKerasTrialContext) -> None:
        super().__init__(context)
        self.called: list[Any] = []
        self.hooks = Hooks(self.called)
        self.training = Noisy(context.get_per_slot_batch_size())
        self.made.append(self)

    def build_model(self) -> Any:
        layers = [keras.layers.Dense(8), keras.layers.BatchNormalization(), keras.layers.Dropout(0.3)]
        model = self.context.wrap_model(keras.Sequential([*layers, keras.layers.Dense(1)]))
        optimizer = self.context.wrap_optimizer(keras.optimizers.Adam(0.01))
        model.compile(optimizer=optimizer, loss="mse", metrics=["mae"])
        return model

    def build_training_data_loader(self) -> Any:
        if self.reject:
            raise InvalidHP("no such batch")
        return self.training

    def build_validation_data_loader(self) -> Any:
        return data()

    def keras_callbacks(self) -> list[Any]:
        return [self.hooks, callbacks.ReduceLROnPlateau(monitor="val_loss", patience=1)]
