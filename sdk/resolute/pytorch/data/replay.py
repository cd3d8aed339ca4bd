"""Replays the order of a script's own sampler after a resume."""

from __future__ import annotations

import contextlib
import itertools
import logging
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch.utils.data import BatchSampler

from resolute.pytorch.backends.random_state import capture, restore, seed_all
from resolute.pytorch.data.generators import OwnGenerators
from resolute.pytorch.data.ordering import derived_seed
from resolute.pytorch.data.stateful import StatefulLoaders

_log = logging.getLogger("resolute.pytorch")
_CPU = torch.device("cpu")
Batch = TypeVar("Batch")
_DEPTH = 3
"""How deep samplers are looked for: a batch sampler has a sampler, and that may have another."""
_KEPT_DIGESTS = 4096
"""Most digests of recent batches that are kept: workers are that many batches ahead at most."""


class ReplayedBatchSampler(BatchSampler):
    """Yields the passes of a script's own batch sampler, so that every run gets the same batches.

    The random numbers that the sampler draws from Python, NumPy and torch depend only on the seed and the
    number of the pass; they do not change the random state of training. Its own generators start as in the
    trial's first run. A resumed run iterates over the earlier passes again, so attributes that the sampler
    updates have the same values.

    Args:
        batch_sampler: Yields the batches of one pass, of all ranks.
        dataset: The data set, whose generators do not belong to the sampler.
        seed: Equal seeds give equal random numbers.
        repeat: Whether to start again after each pass.
        num_replicas: Number of ranks.
        rank: This rank.
    """

    def __init__(
        self,
        batch_sampler: Iterable[list[Any]],
        *,
        dataset: object,
        seed: int,
        repeat: bool,
        num_replicas: int,
        rank: int,
    ) -> None:
        self._batches = batch_sampler
        self._seed = seed
        self._repeat = repeat
        self._replicas = num_replicas
        self._rank = rank
        self._samplers = nested_samplers(batch_sampler)
        self._generators = OwnGenerators(batch_sampler, without=dataset)
        self._first_states = self._generators.states()
        self._digests: dict[int, int] = {}
        self._expected: tuple[int, int] | None = None

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[list[Any]]:
        digest = 0
        for number, batch in enumerate(self._passes()):
            digest = zlib.crc32(_bytes_of(batch), digest)
            self._remember(number, digest)
            yield batch

    def state(self, step: int) -> dict[str, Any]:
        """Returns the state of the order, for checkpoints.

        Args:
            step: Batches that this rank has trained.
        """
        last = (step - 1) * self._replicas + self._rank
        return {"generators": self._first_states, "last": last, "digest": self._digests.get(last)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Lets the sampler begin as it began in the first run; called before the first batch."""
        self._generators.restore(state["generators"])
        self._first_states = self._generators.states()
        if state["digest"] is not None:
            self._expected = (state["last"], state["digest"])

    def _passes(self) -> Iterator[list[Any]]:
        for number in itertools.count():
            for sampler in self._samplers:
                if callable(getattr(sampler, "set_epoch", None)):
                    sampler.set_epoch(number)
            empty = True
            for batch in isolated(self._batches, derived_seed(self._seed, number)):
                empty = False
                yield batch
            if empty or not self._repeat:
                return

    def _remember(self, number: int, digest: int) -> None:
        self._digests[number] = digest
        self._digests.pop(number - _KEPT_DIGESTS, None)
        if self._expected is not None and self._expected[0] == number:
            if self._expected[1] != digest:
                _log.warning(
                    "%s deals other records than before the pause, so some come twice in this epoch and "
                    "others never: let its order follow from set_epoch(), from a generator that is its "
                    "attribute, or from the generators of random, numpy or torch",
                    type(self._samplers[-1]).__name__,
                )
            self._expected = None


@dataclass(frozen=True)
class DataOrder:
    """The state of the data's order in a checkpoint."""

    trial: OwnGenerators | None = None
    """Generators that the trial has as attributes, for what it draws itself."""
    callbacks: OwnGenerators | None = None
    """Generators of its callbacks."""
    sampler: ReplayedBatchSampler | None = None
    """The script's own sampler, if it has one."""
    dataset: OwnGenerators | None = None
    """Generators of the data set, where this process reads it."""
    loaders: StatefulLoaders | None = None
    """Loaders that tell where they are: the training loader, and those that the trial has as attributes."""
    batches_per_step: int = 1
    """Batches of the loader that a step takes."""

    def state(self, step: int) -> dict[str, Any]:
        """Returns the current state, after a number of steps."""
        return {
            "trial": None if self.trial is None else self.trial.states(),
            "callbacks": None if self.callbacks is None else self.callbacks.states(),
            "sampler": None if self.sampler is None else self.sampler.state(step * self.batches_per_step),
            "dataset": None if self.dataset is None else self.dataset.states(),
            "loaders": None if self.loaders is None else self.loaders.states(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores what ``state`` returned; called before the first batch."""
        if self.trial is not None and state.get("trial") is not None:
            self.trial.restore(state["trial"])  # first: a sampler of the trial's begins as in the first run
        if self.callbacks is not None and state.get("callbacks") is not None:
            self.callbacks.restore(state["callbacks"])
        if self.sampler is not None and state["sampler"] is not None:
            self.sampler.restore(state["sampler"])
        if self.dataset is not None and state["dataset"] is not None:
            self.dataset.restore(state["dataset"])
        if self.loaders is not None and state.get("loaders") is not None:
            self.loaders.restore(state["loaders"])


def isolated(batches: Iterable[Batch], seed: int) -> Iterator[Batch]:
    """Yields batches; random numbers that they take follow from a seed, and are none of training's."""
    own: dict[str, Any] | None = None

    @contextlib.contextmanager
    def swapped() -> Iterator[None]:
        nonlocal own
        outer = capture(_CPU)
        if own is None:
            seed_all(seed)
        else:
            restore(own, _CPU)
        try:
            yield
        finally:
            own = capture(_CPU)
            restore(outer, _CPU)

    with swapped():
        iterator = iter(batches)
    while True:
        with swapped():
            try:
                batch = next(iterator)
            except StopIteration:
                return
        yield batch


def nested_samplers(sampler: object) -> list[Any]:
    """Returns a batch sampler (or a loader), and the samplers inside of it, outermost first."""
    samplers = [sampler]
    for _ in range(_DEPTH):
        inner = getattr(samplers[-1], "batch_sampler", None) or getattr(samplers[-1], "sampler", None)
        if inner is None:
            break
        samplers.append(inner)
    return samplers


def _bytes_of(batch: Any) -> bytes:
    try:
        return array("q", batch).tobytes()
    except (TypeError, OverflowError):
        return repr(batch).encode()
