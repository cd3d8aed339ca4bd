"""Limits of a search's memory. They are checked before it is created, not when its log is read again."""

from __future__ import annotations

from resolute_searcher.spec.search import CustomSpec, PluginSpec, SearchSpec, SingleSpec
from resolute_searcher.spec.space import Categorical, Const, Json, Space
from resolute_searcher.spec.violations import Violations

MAX_SAMPLE_BYTES = 1024 * 1024
"""Most bytes of the hyperparameters of one trial."""
MAX_INITIAL_BYTES = 256 * 1024 * 1024
"""Most bytes of the hyperparameters of all trials that a search begins with."""
_NUMBER_BYTES = 16


def check_size(spec: SearchSpec) -> None:
    """Checks that the trials of a search do not need too much memory.

    Raises:
        InvalidArgumentError: It tells what is too large.
    """
    violations = Violations()
    sample, trials = _space_bytes(spec.space), _initial_trials(spec)
    violations.require(
        sample <= MAX_SAMPLE_BYTES,
        "hyperparameters",
        f"of one trial may have {MAX_SAMPLE_BYTES} bytes, not {sample}; read large values from a file",
    )
    violations.require(
        sample * trials <= MAX_INITIAL_BYTES,
        "searcher.max_concurrent_trials",
        f"gives {trials} trials at once with {sample * trials} bytes of hyperparameters; they may have "
        f"{MAX_INITIAL_BYTES}",
    )
    violations.raise_if_any("search spec")


def _initial_trials(spec: SearchSpec) -> int:
    match spec.method:
        case SingleSpec() | CustomSpec() | PluginSpec():
            return 1
        case method:
            most: int = getattr(method, "max_trials", method.max_concurrent_trials)
            return min(method.max_concurrent_trials or most, most)


def _space_bytes(space: Space) -> int:
    total = 0
    for name, axis in space.hyperparameters.items():
        total += len(name) + _NUMBER_BYTES
        match axis:
            case Space():
                total += _space_bytes(axis)
            case Const(value):
                total += _bytes(value)
            case Categorical(vals):
                total += max(map(_bytes, vals), default=0)
    return total


def _bytes(value: Json) -> int:
    if isinstance(value, str):
        return _NUMBER_BYTES + len(value)
    if isinstance(value, dict):
        return _NUMBER_BYTES + sum(len(key) + _bytes(item) for key, item in value.items())
    if isinstance(value, list):
        return _NUMBER_BYTES + sum(map(_bytes, value))
    return _NUMBER_BYTES
