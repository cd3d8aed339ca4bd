"""Every point of a grid over the space."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from resolute_searcher.log.events import Extended, MethodEvent, Retried, Started, TrialClosed, TrialExited
from resolute_searcher.log.operations import Close, Create, MethodOperation, ValidateAfter
from resolute_searcher.methods.base import Sampler
from resolute_searcher.methods.length_extension import LengthExtension
from resolute_searcher.spec.space import (
    Categorical,
    Const,
    DoubleRange,
    Hyperparameter,
    IntRange,
    Json,
    LogRange,
    Space,
)


class GridSearch:
    """Trains every grid point to the full length, the last point first.

    Args:
        space: The space; its ranges carry counts.
        max_length: Length to train to; None when trials themselves know when they are done.
        max_concurrent_trials: Trials alive at once; 0 is no limit.

    Raises:
        ValueError: A range has no count.
    """

    def __init__(self, space: Space, *, max_length: int | None, max_concurrent_trials: int) -> None:
        self._grid = Grid(space)
        self._max_length = max_length
        self._initial_trials = min(self._grid.size, max_concurrent_trials or self._grid.size)
        self._created = 0
        self._finished = 0
        self._open: dict[str, None] = {}
        self._length_extension = LengthExtension()

    def absorb(self, event: MethodEvent) -> None:
        """Counts ends."""
        match event:
            case TrialExited(request_id):
                self._length_extension.leave(request_id)
            case TrialClosed(request_id) if request_id in self._open:
                del self._open[request_id]
                self._finished += 1
                self._length_extension.end(request_id)
            case Retried(request_id):
                self._open[request_id] = None
                self._finished -= 1
                self._length_extension.retry(request_id)
            case Extended(_, max_length):
                self._max_length = max_length
                self._length_extension.extend()

    def decide(self, event: MethodEvent, sampler: Sampler) -> Iterator[MethodOperation]:
        """Fills the concurrency at the start; afterwards each end makes room for the next point."""
        match event:
            case Started():
                for _ in range(self._initial_trials):
                    yield from self._trial(sampler)
            case TrialClosed():
                yield from self._next(sampler)
            case Retried(request_id) if self._max_length is not None:
                # An extension may have come after it left.
                yield ValidateAfter(request_id, self._max_length)
            case Extended():
                while len(self._open) < self._initial_trials and self._length_extension.waits:
                    yield from self._next(sampler)

    def apply(self, operation: MethodOperation) -> None:
        """Counts points."""
        if isinstance(operation, Create):
            self._created += 1
            self._open[operation.request_id] = None
        elif isinstance(operation, ValidateAfter) and self._length_extension.dequeue(operation.request_id):
            self._open[operation.request_id] = None
            self._finished -= 1

    def progress(self, reached: Mapping[str, float]) -> float:
        """Gives trained over planned units; refused points count as complete."""
        full = self._max_length or 1
        trained = self._finished * full + sum(min(reached.get(trial, 0.0), full) for trial in self._open)
        return trained / (full * self._grid.size)

    def snapshot(self) -> dict[str, Any]:
        """Gives the counts and the open trials."""
        return {
            "created": self._created,
            "finished": self._finished,
            "open": list(self._open),
        } | self._length_extension.snapshot()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes over the counts and the open trials."""
        self._created = state["created"]
        self._finished = state["finished"]
        self._open = dict.fromkeys(state["open"])
        self._length_extension.restore(state)

    def _next(self, sampler: Sampler) -> Iterator[MethodOperation]:
        if self._length_extension.waits and self._max_length is not None:
            yield from self._length_extension.next(self._max_length)
        elif self._created < self._grid.size:
            yield from self._trial(sampler)

    def _trial(self, sampler: Sampler) -> Iterator[MethodOperation]:
        created = sampler.create(self._grid.point(self._grid.size - 1 - self._created))
        yield created
        if self._max_length is not None:
            yield ValidateAfter(created.request_id, self._max_length)
            yield Close(created.request_id)


class Grid:
    """The points of a space by number, computed when asked for: a grid may be far too large to hold.

    Axes are in ascending order of names, nested ones depth first; the last axis varies fastest.

    Args:
        space: The space; its ranges carry counts.

    Raises:
        ValueError: A range has no count.
    """

    def __init__(self, space: Space) -> None:
        self._axes = list(_axes(space, ()))
        self.size = math.prod(len(values) for _, values in self._axes)

    def point(self, number: int) -> dict[str, Json]:
        """Gives the hyperparameters of a point.

        Args:
            number: From 0 to size - 1.
        """
        chosen: list[tuple[tuple[str, ...], Json]] = []
        for path, values in reversed(self._axes):
            number, position = divmod(number, len(values))
            chosen.append((path, values[position]))
        hparams: dict[str, Json] = {}
        for path, value in reversed(chosen):
            group = hparams
            for name in path[:-1]:
                group = group.setdefault(name, {})
            group[path[-1]] = value
        return hparams


def missing_counts(space: Space, path: str) -> Iterator[str]:
    """Yields the paths of the ranges that a grid cannot use, since they have no count."""
    for name in sorted(space.hyperparameters):
        match space.hyperparameters[name]:
            case Space() as group:
                yield from missing_counts(group, f"{path}.{name}")
            case IntRange(count=None) | DoubleRange(count=None) | LogRange(count=None):
                yield f"{path}.{name}.count"


def _axes(space: Space, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], list[Json]]]:
    for name in sorted(space.hyperparameters):
        here = (*path, name)
        match space.hyperparameters[name]:
            case Space() as group if group.hyperparameters:
                yield from _axes(group, here)
            case Space():
                yield here, [{}]
            case axis:
                yield here, _values(axis, ".".join(here))


def _values(axis: Hyperparameter, name: str) -> list[Json]:
    match axis:
        case Const(value):
            return [value]
        case Categorical(vals):
            return list(vals)
        case IntRange(minval, maxval, int(count)):
            points = min(count, maxval - minval + 1)
            return [_half_away_from_zero(value) for value in _spread(minval, maxval, points)]
        case DoubleRange(minval, maxval, int(count)):
            return _spread(minval, maxval, count)
        case LogRange(minval, maxval, base, int(count)):
            return [float(base**exponent) for exponent in _spread(minval, maxval, count)]
    raise ValueError(f"hyperparameter {name} needs a count to be searched by a grid")


def _spread(low: float, high: float, count: int) -> list[float]:
    if count == 1:
        return [(low + high) / 2]
    return [low + position * (high - low) / (count - 1) for position in range(count)]


def _half_away_from_zero(value: float) -> int:
    return math.floor(value + 0.5) if value >= 0 else math.ceil(value - 0.5)
