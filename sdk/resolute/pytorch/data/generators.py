"""The random number generators of a script's trial, sampler or data set."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import torch

from resolute.pytorch.data.held_objects import GENERATORS, walk

_log = logging.getLogger("resolute.pytorch")
Generator: TypeAlias = (
    "random.Random | np.random.Generator | np.random.RandomState | np.random.BitGenerator | torch.Generator"
)
_BOUND: tuple[Any, ...] = (random.random, np.random.rand)
_OF_PROCESS = {id(torch.default_generator), *(id(method.__self__) for method in _BOUND)}
"""Identities of the generators of random, numpy and torch, which are kept with the rank."""


class OwnGenerators:
    """The generators among the attributes of an object and of the objects in them, each by its path.

    For functions and methods, it includes the generators in their closures and modules, and so also those of
    the functions that they call.

    Args:
        owner: The object.
        without: An object that is not searched.
    """

    def __init__(self, owner: object, *, without: object = None) -> None:
        self._generators = dict(_search(owner, without))

    def __bool__(self) -> bool:
        return bool(self._generators)

    def states(self) -> dict[str, Any]:
        """Returns the current state of each generator."""
        return {path: _state_of(generator) for path, generator in self._generators.items()}

    def restore(self, states: Mapping[str, Any]) -> None:
        """Restores the states that ``states`` returned.

        A generator that it lacks stays as it is; one whose state is that of another kind too, with a warning.
        """
        for path, generator in self._generators.items():
            if path not in states:
                continue
            try:
                _set_state(generator, states[path])
            except (KeyError, RuntimeError, TypeError, ValueError) as failure:
                _log.warning(
                    "%s (%s) begins anew: the checkpoint has the state of another kind of generator under "
                    "this name (%s)",
                    path.removeprefix("."),
                    type(generator).__name__,
                    failure,
                )

    def seed(self, seed: int) -> None:
        """Seeds all generators."""
        for generator in self._generators.values():
            if isinstance(generator, np.random.Generator):
                generator.bit_generator.state = type(generator.bit_generator)(seed).state
            elif isinstance(generator, np.random.BitGenerator):
                generator.state = type(generator)(seed).state
            elif isinstance(generator, torch.Generator):
                generator.manual_seed(seed)
            else:
                generator.seed(seed & 0xFFFFFFFF)


def is_of_system(generator: object) -> bool:
    """Whether a generator draws from the operating system, and so has no state."""
    return isinstance(generator, random.SystemRandom)


def _search(owner: object, without: object) -> Iterator[tuple[str, Generator]]:
    for path, value in walk(owner, without=(without,)):
        if isinstance(value, GENERATORS) and not is_of_system(value) and id(value) not in _OF_PROCESS:
            yield path, value


def _state_of(generator: Generator) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    if isinstance(generator, np.random.BitGenerator):
        return generator.state
    return generator.get_state()


def _set_state(generator: Generator, state: Any) -> None:
    if isinstance(generator, random.Random):
        generator.setstate(state)
    elif isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    elif isinstance(generator, np.random.BitGenerator):
        generator.state = state
    else:
        generator.set_state(state)
