"""Draws one sample of a search space, for runs without a cluster."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from resolute.errors import InvalidConfigError

_KINDS = frozenset({"const", "int", "double", "log", "categorical"})


def sample(space: Mapping[str, Any], *, seed: int) -> dict[str, Any]:
    """Samples every hyperparameter of a config. The values differ from those that the searcher samples.

    Args:
        space: The config's ``hyperparameters``.
        seed: Equal seeds give equal samples.

    Raises:
        InvalidConfigError: A hyperparameter lacks what its type needs.
    """
    return _sample(space, random.Random(seed), "hyperparameters")  # noqa: S311 - no secret


def _sample(space: Mapping[str, Any], source: random.Random, path: str) -> dict[str, Any]:
    return {name: _one(space[name], source, f"{path}.{name}") for name in sorted(space)}


def _one(spec: Any, source: random.Random, path: str) -> Any:
    if not isinstance(spec, Mapping):
        return spec
    kind = spec.get("type")
    if not isinstance(kind, str):
        return _sample(spec, source, path)
    if kind not in _KINDS:
        expected = ", ".join(sorted(_KINDS))
        raise InvalidConfigError(
            f"{path}.type is {kind!r}; expected one of {expected}, or nested hyperparameters"
        )
    try:
        return _draw(kind, spec, source)
    except KeyError as error:
        raise InvalidConfigError(f"{path} lacks {error.args[0]!r}, which the type {kind!r} needs") from error
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        raise InvalidConfigError(f"{path} cannot be sampled: {error}") from error


def _draw(kind: str, spec: Mapping[str, Any], source: random.Random) -> Any:
    if kind == "const":
        return spec["val"]
    if kind == "categorical":
        return source.choice(spec["vals"])
    low, high = spec["minval"], spec["maxval"]
    if kind == "int":
        return source.randint(low, high)
    exponent = source.uniform(low, high)
    return exponent if kind == "double" else float(spec.get("base", 10.0)) ** exponent
