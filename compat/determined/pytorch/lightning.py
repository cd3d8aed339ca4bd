"""Trials made of a LightningModule."""

from resolute.pytorch.lightning import *
