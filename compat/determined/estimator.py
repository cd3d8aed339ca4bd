"""Refused: the module of older releases, with what to use instead."""

raise ImportError(
    "determined.estimator is not available: TensorFlow removed estimators; "
    "train with the Core API (docs/core-api.md) or with PyTorch"
)
