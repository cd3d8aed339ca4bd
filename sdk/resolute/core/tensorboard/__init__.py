"""TensorBoard files of a trial.

Reported metrics written as events by a background thread, and files copied to the experiment's storage.
"""

from resolute.core.tensorboard.manager import (
    AutoTensorboard,
    LocalTensorboard,
    Mangler,
    ManualTensorboard,
    PathSelector,
    Tensorboard,
    TensorboardMode,
    keep_path,
    select_all,
)

__all__ = [
    "AutoTensorboard",
    "LocalTensorboard",
    "Mangler",
    "ManualTensorboard",
    "PathSelector",
    "Tensorboard",
    "TensorboardMode",
    "keep_path",
    "select_all",
]
