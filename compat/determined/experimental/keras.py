"""Refused: the module of the first releases, with what to use instead."""

raise ImportError(
    "determined.experimental.keras is not available: train by model.fit with "
    "determined.keras.DeterminedCallback, or write a determined.keras.TFKerasTrial (docs/keras.md)"
)
