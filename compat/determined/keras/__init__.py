"""Keras on the platform."""

import sys

import resolute.keras
from resolute.keras import *

sys.modules[__name__] = sys.modules["resolute.keras"]
# The package in this one's place would have its module imported a second time under this one's name.
sys.modules[f"{__name__}.callbacks"] = resolute.keras.callbacks
