"""Trials made of a LightningModule, under the name that older releases have for them."""

from resolute.pytorch.lightning.adapter import LightningAdapter

__all__ = ["LightningAdapter"]
