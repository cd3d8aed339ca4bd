"""Keras on the platform."""

import sys

import resolute.keras
from resolute.keras import *

sys.modules[__name__] = sys.modules["resolute.keras"]
