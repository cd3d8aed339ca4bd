"""The paths to which TensorBoard events are written and copied."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resolute.info import get_cluster_info


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


def get_experiment_sync_path(cluster_id: str, experiment_id: str) -> Path:
    """Returns where the events of an experiment are kept, below the storage of its checkpoints."""
    return Path(cluster_id) / "tensorboard" / "experiment" / str(experiment_id)


def get_sync_path(cluster_id: str, experiment_id: str, trial_id: str) -> Path:
    """Returns where the events of a trial are kept, below the storage of its checkpoints."""
    return get_experiment_sync_path(cluster_id, experiment_id) / "trial" / str(trial_id)
