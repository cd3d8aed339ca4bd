"""Refused: the module of older releases, with what to use instead."""

raise ImportError(
    "determined.pytorch.lightning is not available: its LightningAdapter is of Lightning 1.x; "
    "give resolute.lightning.ResoluteCallback to Lightning's own Trainer (docs/integrations.md)"
)
