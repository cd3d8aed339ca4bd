"""Parts of training in PyTorch that may still change."""

from resolute.pytorch.experimental import *
