"""The names of the files of a checkpoint, of this release and of older ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from resolute.trial_errors import InvalidCheckpointException

STATE_FILE = "state_dict.pth"
_STATE_FILES = (
    STATE_FILE,
    "state-dict.pth",
    "determined/state_dict.pth",
    "pedl/state_dict.pth",
    "checkpoint.pt",
)
_SINGULAR = {
    "model_state_dict": "models_state_dict",
    "optimizer_state_dict": "optimizers_state_dict",
    "lr_scheduler": "lr_schedulers_state_dict",
    "lr_scheduler_state_dict": "lr_schedulers_state_dict",
}
_PREFIXES = ("module.", "_orig_mod.")
"""What DistributedDataParallel and torch.compile put before the names of a model's weights."""


def rank_file(rank: int) -> str:
    """Returns the name of the file of a rank's own state."""
    return f"rank_state_{rank}.pth"


def read_state(directory: Path, *, device: torch.device | str = "cpu", **options: Any) -> dict[str, Any]:
    """Reads the state of models, optimizers and so on, under the names of this release.

    Args:
        directory: Holds the files of a checkpoint.
        device: Where tensors go.
        options: More arguments for ``torch.load``.

    Raises:
        InvalidCheckpointException: There is no such file.
    """
    path = next((directory / name for name in _STATE_FILES if (directory / name).exists()), None)
    if path is None:
        raise InvalidCheckpointException(
            f"{directory} holds no checkpoint of a PyTorch trial: none of {', '.join(_STATE_FILES)} is there"
        )
    options = {"map_location": device, "weights_only": False, **options}
    state: dict[str, Any] = torch.load(path, **options)
    for singular, plural in _SINGULAR.items():
        if singular in state and plural not in state:
            state[plural] = [state.pop(singular)]
    return state


def unwrap_model(model: nn.Module) -> nn.Module:
    """Returns the model without the wrappers of distributed training and compilation."""
    while isinstance(model, nn.parallel.DistributedDataParallel) or hasattr(model, "_orig_mod"):
        model = getattr(model, "module" if not hasattr(model, "_orig_mod") else "_orig_mod")
    return model


def load_model(model: nn.Module, state: Mapping[str, Any], *, recorded_class: str = "") -> None:
    """Loads weights into a model, whatever wrappers the saved model had.

    Raises:
        InvalidCheckpointException: They are another model's.
    """
    inner = unwrap_model(model)
    names = inner.state_dict().keys()
    if names != state.keys():
        state = {_matching(name, names): value for name, value in state.items()}
    try:
        inner.load_state_dict(state)
    except RuntimeError as failure:
        of = f" of {recorded_class}" if recorded_class else ""
        raise InvalidCheckpointException(
            f"the checkpoint{of} does not fit this trial's {type(inner).__name__}: {failure}"
        ) from failure


def _matching(name: str, names: Any) -> str:
    bare = name
    while bare not in names and bare.startswith(_PREFIXES):
        bare = bare.removeprefix(next(prefix for prefix in _PREFIXES if bare.startswith(prefix)))
    if bare in names:
        return bare
    return next((prefix + bare for prefix in _PREFIXES if prefix + bare in names), name)
