"""What users report, as flat names with plain values."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Any

from resolute.contracts.spool.format import Report, Row, Schema
from resolute.errors import InvalidArgumentError

_EXACT_INTEGERS = range(-(2**53), 2**53 + 1)
"""Whole numbers that a double holds exactly."""


def flatten(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Returns metrics by dotted names, with values of numpy, torch and enums as plain Python data.

    Args:
        metrics: Values by name; nested mappings are allowed.

    Raises:
        InvalidArgumentError: A name is no text, two names become the same, or a value cannot be recorded.
    """
    flat: dict[str, Any] = {}
    for name, value in _walk(metrics, ""):
        if name in flat:
            raise InvalidArgumentError(f"two metrics are named {name!r} once nested names are joined by dots")
        flat[name] = value
    return flat


def as_numbers(values: Iterable[Any]) -> tuple[float, ...] | None:
    """Returns the values as doubles, or None if one is no number or is too large a whole number for that."""
    numbers = tuple(values)
    if all(type(value) is float or (type(value) is int and value in _EXACT_INTEGERS) for value in numbers):
        return numbers
    return None


def split_numbers(report: Report) -> tuple[Row, Mapping[str, Any]]:
    """Parts the numbers of a report, which go into columns, from everything else."""
    numbers = {name: value for name, value in report.values.items() if as_numbers((value,))}
    extras = {name: value for name, value in report.values.items() if name not in numbers}
    schema = Schema(group=report.group, names=tuple(numbers))
    return Row(schema, report.steps, report.time, tuple(numbers.values())), extras


def _walk(metrics: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
    for name, value in metrics.items():
        if not isinstance(name, str):
            raise InvalidArgumentError(f"a metric is named {name!r}; names must be text")
        path = f"{prefix}{name}"
        if isinstance(value, Mapping) and value:
            yield from _walk(value, f"{path}.")
        else:
            yield path, plain(value, path)


def plain(value: Any, path: str) -> Any:
    """Returns a value as plain Python data.

    Args:
        value: A number, text, None, an enum's member, an array or tensor, or lists and mappings of those.
        path: Its name, for the error.

    Raises:
        InvalidArgumentError: It is none of those.
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, enum.Enum):
        return value.name
    # Subclasses such as numpy.float64 become exact types, so that encoding takes the short path.
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, f"{path}[{index}]") for index, item in enumerate(value)]
    return _foreign(value, path)


def _foreign(value: Any, path: str) -> Any:
    """Unwraps arrays and tensors by the methods that they share, without importing their libraries."""
    if hasattr(value, "__json__"):
        return plain(value.__json__(), path)
    unwrap = getattr(value, "tolist", None) or getattr(value, "item", None)
    if unwrap is not None:
        return plain(unwrap(), path)
    if hasattr(value, "__float__"):
        return float(value)
    raise InvalidArgumentError(
        f"metric {path!r} is a {type(value).__name__}; "
        "only numbers, text, None, lists and mappings can be reported"
    )
