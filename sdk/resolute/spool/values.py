"""Flattens reported metrics to names with plain values."""

from __future__ import annotations

import enum
import operator
from collections.abc import Iterable, Mapping
from typing import Any

from resolute.contracts.spool.format import MAX_NAME_LENGTH, Report, Row, Schema
from resolute.contracts.unicode_text import valid_unicode
from resolute.errors import InvalidArgumentError
from resolute.spool.omissions import Omissions

_EXACT_INTEGERS = range(-(2**53), 2**53 + 1)
"""Whole numbers that a double holds exactly."""
_MAX_DEPTH = 30
"""Deepest nesting, as of `contracts.values`, which is not imported here: it needs protobuf."""
_INT64 = range(-(2**63), 2**63)
_SHOWN = 80
"""Characters of a name that a message repeats."""


def flatten(metrics: Mapping[str, Any], omissions: Omissions) -> dict[str, Any]:
    """Returns metrics by dotted names, with values of numpy, torch and enums as plain Python data.

    Args:
        metrics: Values by name; nested mappings are allowed.
        omissions: Receives what cannot be recorded: names that are no text or have a wrong length, names that
            become the same, and values.
    """
    flat: dict[str, Any] = {}
    for name, value in _walk(metrics, "", omissions, depth=0):
        if name in flat:
            message = f"two metrics are named {name!r} once nested names are joined by dots; rename one"
            omissions.leave_out("names that are there twice", InvalidArgumentError(message))
        else:
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


def whole_steps(steps: Any) -> int:
    """Returns steps as a whole number of Python.

    Raises:
        InvalidArgumentError: They are no whole number, or need more than 64 bits.
    """
    try:
        whole = int(steps) if isinstance(steps, float) and steps.is_integer() else operator.index(steps)
    except TypeError:
        raise InvalidArgumentError(
            f"steps_completed is of type {type(steps).__name__} and no whole number; give a count of steps"
        ) from None
    if whole not in _INT64:
        raise InvalidArgumentError("steps_completed needs more than 64 bits; give a count of steps")
    return whole


def _walk(
    metrics: Mapping[str, Any], prefix: str, omissions: Omissions, *, depth: int
) -> Iterable[tuple[str, Any]]:
    for name, value in metrics.items():
        path = f"{prefix}{name}" if isinstance(name, str) else name
        if fault := _name_fault(path):
            omissions.leave_out("names that are no text or have a wrong length", InvalidArgumentError(fault))
        elif isinstance(value, Mapping) and value and depth < _MAX_DEPTH:
            yield from _walk(value, f"{path}.", omissions, depth=depth + 1)
        else:
            try:
                recorded = plain(value, path, depth=depth)
            except InvalidArgumentError as error:
                omissions.leave_out(f"values of type {type(value).__name__}", error)
            else:
                yield path, recorded


def _name_fault(name: Any) -> str:
    if not isinstance(name, str):
        return f"a metric is named {name!r}; names must be text"
    if not 0 < len(name) <= MAX_NAME_LENGTH:
        return f"a metric's name {name[:_SHOWN]!r} has {len(name)} characters; give it 1 to {MAX_NAME_LENGTH}"
    return "" if valid_unicode(name) == name else f"a metric is named {name[:_SHOWN]!r}; use valid Unicode"


def plain(value: Any, path: str, *, depth: int = 0) -> Any:
    """Returns a value as plain Python data; whole numbers of more than 64 bits become floating-point numbers.

    Args:
        value: A number, text, None, an enum's member, an array or tensor, or lists and mappings of those.
        path: Its name, for the error.
        depth: Levels that it is nested in.

    Raises:
        InvalidArgumentError: It is none of those, too large a number, or nests too deep.
    """
    if depth > _MAX_DEPTH:
        raise InvalidArgumentError(
            f"metric {path[:_SHOWN]!r} nests deeper than {_MAX_DEPTH} levels; flatten it"
        )
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return valid_unicode(str(value))
    if isinstance(value, enum.Enum):
        return value.name
    # Subclasses such as numpy.float64 become exact types, so that encoding takes the short path.
    if isinstance(value, int):
        return _number(int(value), path)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Mapping):
        return {
            valid_unicode(str(key)): plain(item, f"{path}.{key}", depth=depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [plain(item, f"{path}[{index}]", depth=depth + 1) for index, item in enumerate(value)]
    return _foreign(value, path, depth=depth)


def _number(value: int, path: str) -> int | float:
    try:
        return value if value in _INT64 else float(value)
    except OverflowError:
        raise InvalidArgumentError(
            f"metric {path!r} is a whole number of {value.bit_length()} bits; "
            "what a floating-point number of 64 bits holds can be reported"
        ) from None


def _foreign(value: Any, path: str, *, depth: int) -> Any:
    """Unwraps arrays and tensors by the methods that they share, without importing their libraries."""
    try:
        unwrapped = _unwrap(value)
    except Exception as error:
        raise InvalidArgumentError(
            f"metric {path!r} is a {type(value).__name__} that does not give its value: {error}"
        ) from error
    if unwrapped is not value:
        return plain(unwrapped, path, depth=depth + 1)
    raise InvalidArgumentError(
        f"metric {path!r} is a {type(value).__name__}; "
        "only numbers, text, None, lists and mappings can be reported"
    )


def _unwrap(value: Any) -> Any:
    """Returns what a value of a library stands for; the value itself if nothing is known of it."""
    if hasattr(value, "__json__"):
        return value.__json__()
    unwrap = getattr(value, "tolist", None) or getattr(value, "item", None)
    if unwrap is not None:
        unwrapped = unwrap()
        # numpy has no plain number for its long double, which it gives as it is.
        return float(unwrapped) if type(unwrapped) is type(value) else unwrapped
    return float(value) if hasattr(value, "__float__") else value
