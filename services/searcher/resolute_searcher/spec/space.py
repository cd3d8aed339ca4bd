"""The hyperparameter space of a search, and one sample of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from resolute_searcher.rng import RandomStream
from resolute_searcher.spec.violations import Violations

Json: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, list of these, dict of these by str."""


@dataclass(frozen=True, slots=True)
class Const:
    """A fixed value of any JSON type."""

    value: Json

    def sample(self, random: RandomStream) -> Json:
        """Returns the value; draws nothing."""
        return self.value

    def check(self, path: str, violations: Violations) -> None:
        """Does nothing: any value is a valid constant."""


@dataclass(frozen=True, slots=True)
class IntRange:
    """A whole number from `minval` to `maxval`, including both; in a grid, `count` of them."""

    minval: int
    maxval: int
    count: int | None = None

    def sample(self, random: RandomStream) -> int:
        """Draws an integer, uniformly."""
        return self.minval + random.bounded(self.maxval - self.minval + 1)

    def check(self, path: str, violations: Violations) -> None:
        """Adds the invalid fields to the violations."""
        _check_range(self, path=path, violations=violations)


@dataclass(frozen=True, slots=True)
class DoubleRange:
    """A real number from `minval` to below `maxval`; in a grid, `count` points including both ends."""

    minval: float
    maxval: float
    count: int | None = None

    def sample(self, random: RandomStream) -> float:
        """Draws a number, uniformly."""
        return self.minval + (self.maxval - self.minval) * random.unit()

    def check(self, path: str, violations: Violations) -> None:
        """Adds the invalid fields to the violations."""
        _check_range(self, path=path, violations=violations)


@dataclass(frozen=True, slots=True)
class LogRange:
    """`base` to the power of an exponent from `minval` to below `maxval`; in a grid, `count` points."""

    minval: float
    maxval: float
    base: float = 10.0
    count: int | None = None

    def sample(self, random: RandomStream) -> float:
        """Draws an exponent uniformly, and returns the power."""
        exponent = self.minval + (self.maxval - self.minval) * random.unit()
        return float(self.base**exponent)

    def check(self, path: str, violations: Violations) -> None:
        """Adds the invalid fields to the violations."""
        _check_range(self, path=path, violations=violations)
        if not 0 < self.base < float("inf"):
            violations.add(f"{path}.base", f"must be a finite number above zero, not {self.base}")
            return
        try:
            self.base**self.minval, self.base**self.maxval
        except OverflowError:
            violations.add(
                path, f"base {self.base} to the power of {self.maxval} is too large for a real number"
            )


@dataclass(frozen=True, slots=True)
class Categorical:
    """One of several JSON values; in a grid, all of them."""

    vals: tuple[Json, ...]

    def sample(self, random: RandomStream) -> Json:
        """Draws a value, uniformly."""
        return self.vals[random.bounded(len(self.vals))]

    def check(self, path: str, violations: Violations) -> None:
        """Adds the invalid fields to the violations."""
        if not self.vals:
            violations.add(f"{path}.vals", "must hold at least one value")


@dataclass(frozen=True, slots=True)
class Space:
    """Hyperparameters by name. A space inside a space is a nested group."""

    hyperparameters: Mapping[str, Hyperparameter] = field(default_factory=dict)

    def sample(self, random: RandomStream) -> dict[str, Json]:
        """Samples in ascending order of names, which determines the random words of each hyperparameter."""
        return {name: self.hyperparameters[name].sample(random) for name in sorted(self.hyperparameters)}

    def check(self, path: str, violations: Violations) -> None:
        """Adds the invalid fields of the space to the violations."""
        for name in sorted(self.hyperparameters):
            self.hyperparameters[name].check(f"{path}.{name}", violations)


Hyperparameter: TypeAlias = Const | IntRange | DoubleRange | LogRange | Categorical | Space


def _check_range(axis: IntRange | DoubleRange | LogRange, *, path: str, violations: Violations) -> None:
    # NaN compares false with everything, so the comparison is written for what must hold.
    if not axis.minval < axis.maxval or float("inf") in (axis.maxval, -axis.minval):
        violations.add(
            path, f"minval must be below maxval and both finite; they are {axis.minval} and {axis.maxval}"
        )
    if axis.count is not None and axis.count < 1:
        violations.add(f"{path}.count", f"must be at least 1, not {axis.count}")
