"""Training with Keras: ``resolute.keras``."""

from resolute.keras import *
from resolute.keras import ResoluteCallback as DeterminedCallback
