"""Trials made of a LightningModule."""

import sys

import resolute.pytorch.lightning
from resolute.pytorch.lightning import *

sys.modules[__name__] = sys.modules["resolute.pytorch.lightning"]
