"""Training in PyTorch."""

import sys

import resolute.pytorch
from resolute.pytorch import *

sys.modules[__name__] = sys.modules["resolute.pytorch"]
