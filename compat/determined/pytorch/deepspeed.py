"""Training with DeepSpeed's engines: ``resolute.pytorch.deepspeed``."""

from resolute.pytorch.deepspeed import *
