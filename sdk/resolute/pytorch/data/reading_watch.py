"""Warns of state that a data set gathers from the records it has read, and which a pause loses."""

from __future__ import annotations

import contextlib
import logging
import random
from collections import deque
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import get_worker_info

from resolute.pytorch.data.generators import OwnGenerators
from resolute.pytorch.data.held_objects import walk

_CONTAINERS = (dict, list, set, deque)
_log = logging.getLogger("resolute.pytorch")


class ReadingWatch:
    """Compares the state of a data set before and after it reads the first, second, fourth batch and so on.

    A change of a container is reported only if random numbers were drawn: otherwise the same values are
    computed again. Changes of numbers and tensors are reported in workers; in the main process checkpoints
    check them.

    Args:
        dataset: The data set.
        generators: The data set's own generators.
    """

    def __init__(self, dataset: object, generators: OwnGenerators) -> None:
        self._dataset = dataset
        self._generators = generators
        self._batches = 0
        self._warned_of: set[str] = set()

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Entered while a batch is read."""
        self._batches += 1
        worker = get_worker_info()
        is_compared = self._batches & (self._batches - 1) == 0
        if not is_compared or (worker is not None and worker.id):
            yield  # the copies of the data set in other workers do as that in the first
            return
        before, random_numbers = self._held(), self._random_numbers()
        yield
        after, is_drawn = self._held(), random_numbers != self._random_numbers()
        changed = {
            path
            for path, (is_container, value) in after.items()
            if before.get(path, (is_container, 0 if is_container else value)) != (is_container, value)
            and (is_drawn if is_container else worker is not None)
        }
        self._warn_of(changed)

    def _warn_of(self, changed: set[str]) -> None:
        named = {path for path in changed if not self._is_known(path)}
        self._warned_of |= named
        named = {path for path in named if not self._is_known(path.rpartition(".")[0])}
        if named:
            _log.warning(
                "a pause forgets what a data set remembers of records that were read: %s. Let a record "
                "follow from its index, and from what it draws from random, numpy or torch each time",
                ", ".join(sorted(path.removeprefix(".") for path in named)),
            )

    def _is_known(self, path: str) -> bool:
        return any(path == known or path.startswith(f"{known}.") for known in self._warned_of)

    def _held(self) -> dict[str, tuple[bool, Hashable]]:
        """Returns, by path, whether something is a container, and how much is in it or which value it has."""
        held: dict[str, tuple[bool, Hashable]] = {}
        for path, value in walk(self._dataset):
            with contextlib.suppress(Exception):  # what cannot be compared ends no training
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    held[path] = False, repr(value)
                elif isinstance(value, _CONTAINERS):
                    held[path] = True, len(value)
                elif isinstance(value, torch.Tensor):
                    held[path] = False, value._version
        return held

    def _random_numbers(self) -> Any:
        drawn_from = random.getstate(), np.random.get_state(legacy=True), self._generators.states()
        return repr(drawn_from), torch.random.get_rng_state().numpy().tobytes()
