"""Refused: the module of the first releases, with what to use instead."""

raise ImportError(
    "determined.experimental.estimator is not available: TensorFlow removed estimators; "
    "train with the Core API (docs/core-api.md) or with PyTorch"
)
