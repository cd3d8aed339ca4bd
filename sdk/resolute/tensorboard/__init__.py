"""Where scripts write TensorBoard events, and older writers of them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resolute.info import get_cluster_info

__all__ = ["get_base_path"]


def get_base_path(checkpoint_config: Mapping[str, Any]) -> Path:
    """Returns the directory of this process's events: ``core_context.train.get_tensorboard_path()``.

    Args:
        checkpoint_config: ``base_path`` in it is where the directory is; by default the temporary directory.
    """
    base = Path(checkpoint_config.get("base_path") or tempfile.gettempdir())
    info = get_cluster_info()
    if info is None:
        return base / f"tensorboard-local-{os.getpid()}"
    rank = os.environ.get("HOROVOD_RANK") or os.environ.get("RANK") or "0"
    return base / f"tensorboard-{info.allocation_id}-{rank}"
