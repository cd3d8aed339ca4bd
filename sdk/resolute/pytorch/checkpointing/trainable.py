"""The trainable parameters of a trial and their optimizer groups, which may change during training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from resolute.pytorch.trial.context import PyTorchTrialContext

Place = tuple[int, int]
"""Of a parameter: the number of its model, and its own within that."""


def trainable(context: PyTorchTrialContext) -> dict[str, Any]:
    """Returns which parameters require gradients, and the parameters of each optimizer group."""
    places = {
        id(parameter): (number, index)
        for number, model in enumerate(context.models)
        for index, parameter in enumerate(model.parameters())
    }
    return {
        "requires_grad": [
            [weight.requires_grad for weight in model.parameters()] for model in context.models
        ],
        "groups": [
            [[places.get(id(one)) for one in group["params"]] for group in optimizer.param_groups]
            for optimizer in context.optimizers
        ],
    }


def restore_trainable(context: PyTorchTrialContext, state: Mapping[str, Any]) -> None:
    """Restores which parameters require gradients, and adds the missing groups to optimizers.

    Args:
        context: The context of a trial that resumes.
        state: What ``trainable`` returned; empty for nothing.
    """
    models = [list(model.parameters()) for model in context.models]
    for parameters, flags in zip(models, state.get("requires_grad", ()), strict=False):
        for parameter, trained in zip(parameters, flags, strict=False):
            parameter.requires_grad_(trained)
    for optimizer, groups in zip(context.optimizers, state.get("groups", ()), strict=False):
        for places in groups[len(optimizer.param_groups) :]:
            found = [_at(models, place) for place in places]
            if all(parameter is not None for parameter in found):
                optimizer.add_param_group({"params": found})


def _at(models: list[list[torch.Tensor]], place: Place | None) -> torch.Tensor | None:
    if place is None or place[0] >= len(models) or place[1] >= len(models[place[0]]):
        return None
    return models[place[0]][place[1]]
