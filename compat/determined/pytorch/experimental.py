"""What may still change of training in PyTorch."""

import sys

import resolute.pytorch.experimental
from resolute.pytorch.experimental import *

sys.modules[__name__] = sys.modules["resolute.pytorch.experimental"]
