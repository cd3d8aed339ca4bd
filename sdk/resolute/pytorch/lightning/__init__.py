"""Trials made from a LightningModule, under the name of older releases."""

from resolute.pytorch.lightning.adapter import LightningAdapter

__all__ = ["LightningAdapter"]
