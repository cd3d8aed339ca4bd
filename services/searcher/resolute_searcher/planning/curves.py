"""Learning curves for simulated searches: synthetic or recorded."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from resolute.errors import InvalidArgumentError, Violation
from resolute_searcher.spec.search import SearchSpec
from resolute_searcher.spec.space import Categorical, DoubleRange, IntRange, Json, LogRange, Space


class Curves(Protocol):
    """Learning curves: they return the metric that a trial would report."""

    def metric(self, number: int, hparams: Mapping[str, Json], length: float) -> float:
        """Returns a trial's metric.

        Args:
            number: The trial, from 0 in the order of creation.
            hparams: Its hyperparameters.
            length: Absolute length that it has trained to.
        """


@dataclass(frozen=True, slots=True)
class SyntheticCurves:
    """Curves that fall from 1 towards a value that depends on the hyperparameters, some faster than others.

    Each range has one best value, and the result gets worse with the distance from it, so that a search can
    learn. Equal hyperparameters give equal curves.

    Attributes:
        space: The space of the search.
        smaller_is_better: Whether metrics fall; otherwise they rise from 0 to 1.
        max_length: Length after which the curve hardly changes.
        seed: Seed of the best values.
    """

    space: Space
    smaller_is_better: bool = True
    max_length: float = 1.0
    seed: int = 0

    def metric(self, number: int, hparams: Mapping[str, Json], length: float) -> float:
        """Returns the metric; the trial's number does not matter."""
        distances = _distances(self.space, hparams, path="", seed=self.seed)
        final = math.fsum(distances) / len(distances) if distances else 0.5
        key = json.dumps(hparams, sort_keys=True, default=str)
        speed = 2.0 + 6.0 * _uniform("speed", self.seed, key)
        noise = 0.02 * (_uniform("noise", self.seed, key, f"{length:.6g}") - 0.5)
        value = final + (1.0 - final) * math.exp(-speed * length / self.max_length) + noise
        return value if self.smaller_is_better else 1.0 - value


def synthetic_curves(spec: SearchSpec) -> SyntheticCurves:
    """Returns synthetic curves that fit a spec."""
    return SyntheticCurves(
        space=spec.space,
        smaller_is_better=spec.smaller_is_better,
        max_length=float(getattr(spec.method, "max_length", None) or 1),
        seed=spec.seed,
    )


@dataclass(frozen=True, slots=True)
class RecordedCurve:
    """The metric of one trial at ascending lengths. It is linear between them and constant outside."""

    lengths: Sequence[float]
    metrics: Sequence[float]

    def check(self, name: str) -> None:
        """Checks that the curve is valid.

        Raises:
            InvalidArgumentError: It is empty, its lists differ in length, or its lengths do not ascend.
        """
        problem = ""
        if not self.lengths or len(self.lengths) != len(self.metrics):
            problem = (
                f"needs as many metrics as lengths, and one at least; it has {len(self.lengths)} lengths "
            )
            problem += f"and {len(self.metrics)} metrics"
        elif any(not one < other for one, other in zip(self.lengths, self.lengths[1:], strict=False)):
            problem = "needs lengths that ascend"
        if problem:
            violation = Violation(field=name, description=problem)
            raise InvalidArgumentError(f"{name} {problem}", violations=[violation])

    def at(self, length: float) -> float:
        """Returns the metric at a length."""
        if length <= self.lengths[0]:
            return self.metrics[0]
        for position in range(1, len(self.lengths)):
            high = self.lengths[position]
            if length <= high:
                low = self.lengths[position - 1]
                share = (length - low) / (high - low)
                return self.metrics[position - 1] * (1 - share) + self.metrics[position] * share
        return self.metrics[-1]


@dataclass(frozen=True, slots=True)
class RecordedCurves:
    """Curves of recorded trials. Each new trial takes the next one in turn.

    Attributes:
        curves: The curves; at least one.
    """

    curves: Sequence[RecordedCurve]

    def metric(self, number: int, hparams: Mapping[str, Json], length: float) -> float:
        """Returns the metric on the curve of the trial."""
        return self.curves[number % len(self.curves)].at(length)


def _distances(space: Space, hparams: Mapping[str, Json], *, path: str, seed: int) -> list[float]:
    away: list[float] = []
    for name in sorted(space.hyperparameters):
        axis, here = space.hyperparameters[name], f"{path}.{name}"
        value: Any = hparams.get(name)
        best = _uniform("best", seed, here)
        match axis:
            case Space():
                away += _distances(axis, value or {}, path=here, seed=seed)
            case IntRange() | DoubleRange():
                away.append(abs((value - axis.minval) / (axis.maxval - axis.minval) - best))
            case LogRange():
                exponent = (
                    math.log(value) / math.log(axis.base) if value > 0 and axis.base != 1 else axis.minval
                )
                away.append(abs((exponent - axis.minval) / (axis.maxval - axis.minval) - best))
            case Categorical():
                away.append(_uniform("worth", seed, here, json.dumps(value, sort_keys=True, default=str)))
    return away


def _uniform(*parts: object) -> float:
    digest = hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=7).digest()
    return int.from_bytes(digest, "little") / (1 << 56)
