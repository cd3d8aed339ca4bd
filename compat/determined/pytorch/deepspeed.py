"""Training with DeepSpeed's engines: ``resolute.pytorch.deepspeed``."""

from typing import Any

from determined._older_names import attribute
from resolute.pytorch.deepspeed import *


def __getattr__(name: str) -> Any:
    return attribute(__name__, name)
