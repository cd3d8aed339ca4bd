"""Parts of training in PyTorch that may still change."""

import sys

import resolute.pytorch.experimental
from resolute.pytorch.experimental import *

sys.modules[__name__] = sys.modules["resolute.pytorch.experimental"]
