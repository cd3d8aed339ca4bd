"""Callbacks of Keras that trials use."""

import sys

import resolute.keras.callbacks
from resolute.keras.callbacks import *

sys.modules[__name__] = sys.modules["resolute.keras.callbacks"]
