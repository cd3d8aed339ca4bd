"""Handwritten digits by a small convolutional network in Keras, written as a Trial class."""

import keras
import numpy as np
from sklearn.datasets import load_digits

from resolute.keras import TFKerasTrial, callbacks

VALIDATION_IMAGES = 360


class DigitsTrial(TFKerasTrial):
    def __init__(self, context):
        self.context = context
        digits = load_digits()
        images = (digits.images / 16).astype("float32")[..., np.newaxis]
        order = np.random.RandomState(0).permutation(len(images))  # the same split for every trial
        self.images, self.digits = images[order], digits.target[order]

    def build_model(self):
        layers = keras.layers
        model = keras.Sequential(
            [
                keras.Input((8, 8, 1)),
                layers.Conv2D(self.context.get_hparam("filters"), 3, activation="relu"),
                layers.MaxPooling2D(),
                layers.Flatten(),
                layers.Dropout(self.context.get_hparam("dropout")),
                layers.Dense(10, activation="softmax"),
            ]
        )
        model = self.context.wrap_model(model)
        optimizer = self.context.wrap_optimizer(keras.optimizers.Adam(self.context.get_hparam("lr")))
        model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
        return model

    def build_training_data_loader(self):
        return self.images[VALIDATION_IMAGES:], self.digits[VALIDATION_IMAGES:]

    def build_validation_data_loader(self):
        return self.images[:VALIDATION_IMAGES], self.digits[:VALIDATION_IMAGES]

    def keras_callbacks(self):
        return [callbacks.ReduceLROnPlateau(monitor="val_loss", patience=2)]
