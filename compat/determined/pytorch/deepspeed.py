"""Training with DeepSpeed's engines."""

import sys

import resolute.pytorch.deepspeed
from resolute.pytorch.deepspeed import *

sys.modules[__name__] = sys.modules["resolute.pytorch.deepspeed"]
