"""Keras callbacks for trials."""

from resolute.keras.callbacks import *
