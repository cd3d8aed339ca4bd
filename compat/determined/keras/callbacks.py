"""Callbacks of Keras that trials use."""

from resolute.keras.callbacks import *
