"""A TFKerasTrial with callbacks of every kind, over arrays and a Sequence."""

import keras
import numpy as np

from determined.keras import InputData, TFKerasTrial, TFKerasTrialContext
from determined.keras.callbacks import Callback, EarlyStopping, ReduceLROnPlateau


class Workloads(Callback):
    def __init__(self):
        super().__init__()
        self.trained = 0

    def on_train_workload_end(self, total_batches_trained, logs):
        self.trained = total_batches_trained

    def on_checkpoint_end(self, checkpoint_dir):
        with open(f"{checkpoint_dir}/workloads.txt", "w") as file:
            file.write(str(self.trained))

    def get_state(self):
        return {"trained": self.trained}

    def load_state(self, state):
        self.trained = state["trained"]


class Flowers(keras.utils.PyDataset):
    def __init__(self, x, y):
        super().__init__()
        self.x, self.y = x, y

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return self.x[index * 8 : index * 8 + 8], self.y[index * 8 : index * 8 + 8]


class IrisTrial(TFKerasTrial):
    def __init__(self, context: TFKerasTrialContext):
        self.context = context
        generator = np.random.default_rng(1)
        self.x = generator.random((64, 4)).astype("float32")
        self.y = keras.utils.to_categorical(self.x.argmax(axis=1), num_classes=4)

    def build_model(self):
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4, activation="softmax")])
        model = self.context.wrap_model(model)
        optimizer = self.context.wrap_optimizer(
            keras.optimizers.RMSprop(self.context.get_hparam("learning_rate"))
        )
        model.compile(
            optimizer,
            keras.losses.CategoricalCrossentropy(),
            metrics=[keras.metrics.CategoricalAccuracy(name="accuracy")],
        )
        return model

    def build_training_data_loader(self) -> InputData:
        self.context.configure_fit(shuffle=True, class_weight={0: 1.0, 1: 1.0, 2: 2.0, 3: 1.0})
        return self.x, self.y

    def build_validation_data_loader(self) -> InputData:
        return Flowers(self.x, self.y)

    def keras_callbacks(self):
        return [
            Workloads(),
            EarlyStopping(monitor="val_loss", patience=20),
            ReduceLROnPlateau(monitor="val_loss"),
        ]
