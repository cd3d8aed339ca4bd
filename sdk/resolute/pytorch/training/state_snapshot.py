"""A snapshot of the state of a script's objects, to be compared with a later one."""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import itertools
import random
import types
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from resolute.pytorch.data.held_objects import GENERATORS, attributes, is_function_or_class, is_script_object
from resolute.pytorch.data.stateful import is_stateful_loader
from resolute.pytorch.trial.base_context import TrialContext

_RECORDS = (types.SimpleNamespace, argparse.Namespace, collections.UserDict, collections.UserList)
"""Objects of Python's own library whose attributes are a script's values."""
_CONTAINERS = (list, tuple, collections.deque, set, frozenset)
_KEPT_ELSEWHERE = (*(kind for kind in GENERATORS if kind is not random.Random), DataLoader, TrialContext)
_SAMPLE = 1024
"""Most elements of a tensor that are looked at."""
_MOST_VALUES = 20_000
_MOST_ITEMS = 1000
_DEPTH = 5
_UNKNOWN = "unknown"
_numbers = itertools.count()


class StateSnapshot:
    """The values in the attributes of objects, by names such as ``self.meter.average``.

    It takes numbers, text, tensors, arrays and containers of them, from the objects and from objects of the
    script's own classes in their attributes. From modules it takes the state that is not in their
    ``state_dict``; from modules that are not in checkpoints, everything except parameters with gradients.
    From data sets it takes numbers and tensors.

    Args:
        kept: Identities of the objects that checkpoints hold.

    Attributes:
        values: The values to compare, by name.
    """

    def __init__(self, kept: Iterable[int]) -> None:
        self.values: dict[str, Hashable] = {}
        self._kept = set(kept)
        self._seen: dict[int, object] = {}
        self._left = _MOST_VALUES

    def take(self, name: str, value: Any, *, depth: int = 0) -> None:
        """Records the state of an object or a value under a name.

        What does not let itself be looked at, such as a file of data that is closed, is left out.
        """
        with contextlib.suppress(Exception):
            self._take(name, value, depth=depth)

    def _take(self, name: str, value: Any, *, depth: int) -> None:
        known = id(value) in self._kept or id(value) in self._seen
        if depth > _DEPTH or known or is_function_or_class(value) or isinstance(value, _KEPT_ELSEWHERE):
            return
        if isinstance(value, nn.Module):
            self._take_module(name, value, depth=depth)
        elif isinstance(value, Dataset):
            self._take_all(name, value, depth=depth, only=(int, float, torch.Tensor))
        elif is_script_object(value) or isinstance(value, _RECORDS):
            self._take_all(name, value, depth=depth)
        else:
            found = self.print_of(value)
            if found != _UNKNOWN:
                self.values[name] = found

    def print_of(self, value: Any, *, depth: int = 0) -> Hashable:
        """Returns what a value is compared by: equal for values that are equal."""
        self._left -= 1
        if self._left < 0 or depth > _DEPTH or id(value) in self._kept:
            return _UNKNOWN
        if value is None or isinstance(value, (bool, int, str, bytes)):
            return value if value != _UNKNOWN else ""
        if isinstance(value, (float, complex, np.generic)):
            return repr(value)  # NaN is equal to itself
        if isinstance(value, (torch.Tensor, np.ndarray)):
            return _digest(value)
        if isinstance(value, _CONTAINERS):
            items = list(value)[-_MOST_ITEMS:]
            return len(value), *(self.print_of(item, depth=depth + 1) for item in items)
        if isinstance(value, Mapping):
            items = list(value.items())[-_MOST_ITEMS:]
            return len(value), *((str(name), self.print_of(item, depth=depth + 1)) for name, item in items)
        return self._print_of_object(value, depth=depth)

    def _print_of_object(self, value: Any, *, depth: int) -> Hashable:
        if isinstance(value, random.SystemRandom):
            return _never_again()  # nothing of it can be kept
        if isinstance(value, np.random.SeedSequence):
            return value.n_children_spawned
        if is_lost_iterator(value):
            return value.tell() if isinstance(value, io.IOBase) else _never_again()
        if isinstance(value, (_KEPT_ELSEWHERE, nn.Module, type)) or id(value) in self._seen:
            return _UNKNOWN
        if callable(getattr(value, "state_dict", None)):
            with contextlib.suppress(Exception):
                return self.print_of(value.state_dict(), depth=depth + 1)
        if is_script_object(value) or isinstance(value, _RECORDS):
            self._seen[id(value)] = value
            return self.print_of(vars(value) if hasattr(value, "__dict__") else {}, depth=depth)
        return _UNKNOWN

    def _take_all(self, name: str, owner: object, *, depth: int, only: tuple[type, ...] = (object,)) -> None:
        self._seen[id(owner)] = owner
        for inner, value in attributes(owner):
            if isinstance(value, only):
                self.take(f"{name}.{inner}", value, depth=depth + 1)

    def _take_module(self, name: str, module: nn.Module, *, depth: int) -> None:
        self._seen[id(module)] = module
        wrapped = any(id(parameter) in self._kept for parameter in module.parameters())
        for inner, value in attributes(module):
            # Tensors with a history are values of the forward pass.
            if getattr(value, "grad_fn", None) is None and not inner.rpartition(".")[2].startswith("_"):
                self.take(f"{name}.{inner}", value, depth=depth + 1)
        saved = set(module.state_dict(keep_vars=True)) if wrapped else set()
        parameters = () if wrapped else module.named_parameters()
        for inner, tensor in (*module.named_buffers(), *parameters):
            if inner not in saved and not tensor.requires_grad:
                self.take(f"{name}.{inner}", tensor, depth=depth + 1)


def is_lost_iterator(value: object) -> bool:
    """Whether an object has a place in data that no checkpoint holds: not one over a stateful loader."""
    if isinstance(value, types.GeneratorType):
        # One that is at its end has no place any more, such as one over parameters that an optimizer took.
        return value.gi_frame is not None and not is_stateful_loader(value.gi_frame.f_locals.get("self"))
    if isinstance(value, io.IOBase):
        return not value.closed and value.readable() and value.seekable()
    return isinstance(value, Iterator) and not hasattr(value, "state_dict")


def _never_again() -> Hashable:
    """Returns what is equal to nothing, of what cannot be compared and is in no checkpoint."""
    return "lost", next(_numbers)


def _digest(value: Any) -> Hashable:
    """Returns the shape of a tensor or an array, and a hash of elements that are spread over it."""
    if isinstance(value, np.ndarray):
        flat = value.reshape(-1)
        return _UNKNOWN if value.dtype.hasobject else (value.shape, hash(_spread(flat).tobytes()))
    try:
        sample = _spread(value.detach().reshape(-1)).contiguous()
        return tuple(value.shape), hash(sample.view(torch.uint8).cpu().numpy().tobytes())
    except (TypeError, RuntimeError, NotImplementedError):
        return _UNKNOWN  # sparse, or without data


def _spread(flat: Any) -> Any:
    return flat[:: max(1, len(flat) // _SAMPLE)]
