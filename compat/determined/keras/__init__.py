"""Keras on the platform: ``resolute.keras``."""

from resolute.keras import *
from resolute.keras import ResoluteCallback as DeterminedCallback
