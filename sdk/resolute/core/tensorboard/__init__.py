"""TensorBoard files of a trial: where they are written, and how they get to where they are kept."""

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
