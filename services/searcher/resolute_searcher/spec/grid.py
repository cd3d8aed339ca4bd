"""The points of a grid over a space."""

from __future__ import annotations

import math
from collections.abc import Iterator

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


class Grid:
    """The points of a space by number, computed on demand, because a grid may be too large for memory.

    Axes are in ascending order of names, nested ones depth first; the last axis varies fastest.

    Args:
        space: The space, whose ranges have counts.

    Raises:
        ValueError: A range has no count.
    """

    def __init__(self, space: Space) -> None:
        self._axes = list(_axes(space, ()))
        self.size = math.prod(len(values) for _, values in self._axes)

    def point(self, number: int) -> dict[str, Json]:
        """Returns the hyperparameters of a point.

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


def grid_size(space: Space) -> int:
    """Returns the number of points of a grid over a space; ranges without a count have one."""
    size = 1
    for axis in space.hyperparameters.values():
        match axis:
            case Space():
                size *= grid_size(axis)
            case Categorical(vals):
                size *= len(vals)
            case IntRange(minval, maxval, int(count)):
                size *= min(count, maxval - minval + 1)
            case DoubleRange(count=int(count)) | LogRange(count=int(count)):
                size *= count
    return size


def missing_counts(space: Space, path: str) -> Iterator[str]:
    """Yields the paths of ranges without a count, which a grid cannot use."""
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
