"""Names of TensorBoard files that several ranks write."""

from typing import Any

from determined._older_names import attribute
from resolute.tensorboard.util import get_rank_aware_path

__all__ = ["get_rank_aware_path"]


def __getattr__(name: str) -> Any:
    return attribute(__name__, name)
