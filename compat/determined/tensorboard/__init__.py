"""Directories of TensorBoard events, and writers of older releases."""

from typing import Any

from determined._older_names import attribute
from resolute.tensorboard import *


def __getattr__(name: str) -> Any:
    return attribute(__name__, name)
