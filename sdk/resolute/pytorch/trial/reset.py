"""Resets weights to random initial values."""

from __future__ import annotations

import logging

import torch

_log = logging.getLogger("resolute.pytorch")


def reset_parameters(model: torch.nn.Module) -> None:
    """Calls ``reset_parameters()`` of every module of a model that has it; of the first releases.

    Args:
        model: The model.

    Examples:
        >>> import torch
        >>> from resolute import pytorch
        >>> layer = torch.nn.Linear(2, 1)
        >>> before = layer.weight.clone()
        >>> pytorch.reset_parameters(layer)
        >>> torch.equal(before, layer.weight)
        False
    """
    _log.warning("reset_parameters() is deprecated: call the method of the modules themselves")
    for module in model.modules():
        reset = getattr(module, "reset_parameters", None)
        if callable(reset):
            reset()
