"""Data loaders that can save and restore their position, such as torchdata's ``StatefulDataLoader``."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import torch
from torch import nn
from torch.utils.data import DataLoader as TorchDataLoader


class StatefulLoader(Protocol):
    """A data loader, or an iterator over data, whose position a checkpoint can hold."""

    def state_dict(self) -> Any:
        """Returns the position of the loader."""

    def load_state_dict(self, state_dict: Any, /) -> None:
        """Restores the position; called before an iteration."""


class StatefulLoaders:
    """The stateful loaders of a trial, each by its name.

    Args:
        named: Names with objects that may be such loaders. The first name of each object counts.
        seed: Seed for the random numbers that torch's loaders draw, which otherwise come from the random
            state of training.
    """

    def __init__(self, named: Iterable[tuple[str, object]], *, seed: int) -> None:
        self._loaders: dict[str, Any] = {}
        for name, value in named:
            if is_stateful_loader(value) and not any(value is known for known in self._loaders.values()):
                self._loaders[name] = value
                _draw_apart(value, seed)

    def states(self) -> dict[str, Any]:
        """Returns the position of each loader."""
        return {name: copy.deepcopy(loader.state_dict()) for name, loader in self._loaders.items()}

    def restore(self, states: Mapping[str, Any]) -> None:
        """Restores the positions that ``states`` returned."""
        for name, loader in self._loaders.items():
            if name in states:
                loader.load_state_dict(states[name])


def is_stateful_loader(value: object) -> bool:
    """Whether an object yields data and can be positioned; modules are none."""
    if isinstance(value, (nn.Module, type)) or not (hasattr(value, "__iter__") or hasattr(value, "__next__")):
        return False
    return all(callable(getattr(value, name, None)) for name in ("state_dict", "load_state_dict"))


def _draw_apart(loader: object, seed: int) -> None:
    """Lets a loader of torch draw its seeds from a generator of its own."""
    if not isinstance(loader, TorchDataLoader):
        return
    drawing: list[Any] = [loader, loader.sampler]
    for owner in drawing:
        if getattr(owner, "generator", seed) is None:
            owner.generator = torch.Generator().manual_seed(seed)
