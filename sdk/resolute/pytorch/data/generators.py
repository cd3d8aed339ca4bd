"""Generators of random numbers that a script's trial, sampler or data set draws from."""

from __future__ import annotations

import contextlib
import functools
import random
import types
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import nn

Generator: TypeAlias = "random.Random | np.random.Generator | np.random.RandomState | torch.Generator"
_KINDS = (random.Random, np.random.Generator, np.random.RandomState, torch.Generator)
_BOUND: tuple[Any, ...] = (random.random, np.random.rand)
_OF_PROCESS = {id(torch.default_generator), *(id(method.__self__) for method in _BOUND)}
"""Identities of the generators of random, numpy and torch, which are kept with the rank."""
_DEPTH = 8
"""How deep they are looked for: a subset of several data sets, each with transforms, one with a generator."""
_MOST_OBJECTS = 1000
"""Most objects that are looked into."""


class OwnGenerators:
    """The generators among the attributes of an object and of what it holds, each by its path.

    Of functions and methods, those that they find in the functions around them and in their module.

    Args:
        owner: The object.
        without: An object that is not looked into.
    """

    def __init__(self, owner: object, *, without: object = None) -> None:
        self._generators = dict(_search(owner, without))

    def __bool__(self) -> bool:
        return bool(self._generators)

    def states(self) -> dict[str, Any]:
        """Returns the state of each, as it is now."""
        return {path: _state_of(generator) for path, generator in self._generators.items()}

    def restore(self, states: Mapping[str, Any]) -> None:
        """Takes up what ``states`` returned; a generator that it lacks stays as it is."""
        for path, generator in self._generators.items():
            if path in states:
                _set_state(generator, states[path])

    def seed(self, seed: int) -> None:
        """Seeds all of them."""
        for generator in self._generators.values():
            if isinstance(generator, np.random.Generator):
                generator.bit_generator.state = type(generator.bit_generator)(seed).state
            elif isinstance(generator, torch.Generator):
                generator.manual_seed(seed)
            else:
                generator.seed(seed & 0xFFFFFFFF)


def _search(owner: object, without: object) -> Iterator[tuple[str, Generator]]:
    seen = {id(without)}
    level: list[tuple[str, object]] = [("", owner)]
    for _ in range(_DEPTH):
        inner: list[tuple[str, object]] = []
        for path, holder in level:
            if id(holder) in seen or len(seen) > _MOST_OBJECTS:
                continue
            seen.add(id(holder))
            for name, value in _content(holder):
                if isinstance(value, _KINDS) and id(value) not in _OF_PROCESS:
                    yield f"{path}.{name}", value
                else:
                    inner.append((f"{path}.{name}", value))
        level = inner


def _content(holder: object) -> Iterator[tuple[str, object]]:
    """Yields what may hold a generator, or is one: attributes, and the items of short lists and dicts."""
    if isinstance(holder, (list, tuple)) and len(holder) < _MOST_OBJECTS:
        yield from ((str(index), value) for index, value in enumerate(holder))
    elif isinstance(holder, dict) and len(holder) < _MOST_OBJECTS:
        yield from ((str(key), value) for key, value in holder.items())
    elif isinstance(holder, (types.MethodType, types.BuiltinMethodType)):
        yield "__self__", holder.__self__
    elif isinstance(holder, functools.partial):
        yield from (("func", holder.func), ("args", holder.args), *holder.keywords.items())
    elif isinstance(holder, types.FunctionType):
        yield from _reached_by(holder)
    elif not isinstance(holder, (torch.Tensor, nn.Module, type, types.ModuleType)):
        yield from getattr(holder, "__dict__", {}).items()
        yield from _global_generators(type(holder))


def _global_generators(kind: type) -> Iterator[tuple[str, object]]:
    """Yields the generators of a module that the methods of a class name."""
    for method in vars(kind).values():
        if isinstance(method, types.FunctionType):
            yield from ((name, value) for name, value in _reached_by(method) if isinstance(value, _KINDS))


def _reached_by(function: types.FunctionType) -> Iterator[tuple[str, object]]:
    """Yields what a function has of the functions around it, and generators of its module that it names."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        with contextlib.suppress(ValueError):  # it is empty until the function around has set it
            yield name, cell.cell_contents
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, _KINDS):
            yield name, value


def _state_of(generator: Generator) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    return generator.get_state()


def _set_state(generator: Generator, state: Any) -> None:
    if isinstance(generator, random.Random):
        generator.setstate(state)
    elif isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    else:
        generator.set_state(state)
