"""Hyperparameters as Python calls, each of which returns its config section."""

from __future__ import annotations

# ruff: noqa: N802 - these are the documented names
from collections.abc import Sequence
from typing import Any


def Constant(value: Any) -> dict[str, Any]:
    """A fixed value of any JSON type."""
    return {"type": "const", "val": value}


def Integer(minval: int, maxval: int, count: int | None = None) -> dict[str, Any]:
    """A whole number between two bounds, both included.

    Args:
        minval: Smallest value.
        maxval: Largest value.
        count: Points on this axis of a grid.
    """
    return _ranged("int", minval, maxval, count)


def Double(minval: float, maxval: float, count: int | None = None) -> dict[str, Any]:
    """A number between two bounds.

    Args:
        minval: Smallest value.
        maxval: Upper bound.
        count: Points on this axis of a grid.
    """
    return _ranged("double", minval, maxval, count)


def Log(minval: float, maxval: float, base: float = 10.0, count: int | None = None) -> dict[str, Any]:
    """``base`` raised to an exponent between two bounds.

    Args:
        minval: Smallest exponent.
        maxval: Upper bound of the exponent.
        base: The base, above zero.
        count: Points on this axis of a grid.
    """
    return {**_ranged("log", minval, maxval, count), "base": base}


def Categorical(vals: Sequence[Any]) -> dict[str, Any]:
    """One of some values of any JSON type."""
    return {"type": "categorical", "vals": list(vals)}


def _ranged(kind: str, minval: float, maxval: float, count: int | None) -> dict[str, Any]:
    field = {"type": kind, "minval": minval, "maxval": maxval}
    return field if count is None else {**field, "count": count}
