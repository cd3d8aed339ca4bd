"""TensorBoard files of a trial.

A background thread writes reported metrics as events; files are copied to the experiment's storage.
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
