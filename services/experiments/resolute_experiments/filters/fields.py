"""The fields that filters can compare, and the comparison of each kind of field."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, TypeAlias

import sqlalchemy as sa

from resolute_experiments.filters.syntax import Comparison, Group, Negation, Node, Text
from resolute_serving.database.text_search import contains

Condition: TypeAlias = "sa.ColumnElement[bool]"
Field: TypeAlias = Callable[[Comparison], Condition]
_ORDERS: Mapping[str, Callable[[Any, Any], Condition]] = {
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
_AGO = re.compile(r"-(\d{1,6})(m|h|d|w)")
_SECONDS = {"m": 60, "h": 3600, "d": 86400, "w": 604800}


@dataclass(frozen=True)
class Fields:
    """The fields of one kind of object."""

    known: Mapping[str, Field]
    """By name."""
    other: Field
    """Compares what has another name: metrics and hyperparameters."""
    text: Callable[[str], Condition]
    """Compares a word without a field."""

    def condition(self, node: Node) -> Condition:
        """What the database checks for a part of a filter.

        Raises:
            InvalidArgumentError: Something in it cannot be compared so.
        """
        match node:
            case Text(text):
                return self.text(text)
            case Negation(part):
                return sa.not_(self.condition(part))
            case Group(parts, is_any):
                conditions = [self.condition(part) for part in parts]
                return sa.or_(*conditions) if is_any else sa.and_(*conditions)
            case Comparison(name):
                return self.known.get(name.lower(), self.other)(node)


def text(column: sa.ColumnElement[Any]) -> Field:
    """A field that holds text."""

    def compare(asked: Comparison) -> Condition:
        if asked.operator == "~":
            return contains(column, asked.value)
        if asked.operator not in {"=", "!="}:
            raise asked.wrong("text is compared by =, != or ~ (contains)")
        return compared(column, asked.operator, asked.value)

    return compare


def choice(conditions: Mapping[str, Condition]) -> Field:
    """A field that has one of some values, each of which a word names."""

    def compare(asked: Comparison) -> Condition:
        condition = conditions.get(asked.value.lower())
        if condition is None or asked.operator not in {"=", "!="}:
            raise asked.wrong(f"compare it by = or != with one of {', '.join(conditions)}")
        return condition if asked.operator == "=" else sa.not_(condition)

    return compare


def number(column: sa.ColumnElement[Any]) -> Field:
    """A field that holds a number."""

    def compare(asked: Comparison) -> Condition:
        value = as_number(asked.value)
        if value is None or asked.operator not in _ORDERS:
            raise asked.wrong("compare it by = != < <= > >= with a number such as 0.1, 1e-3 or 62%")
        return compared(column, asked.operator, value)

    return compare


def moment(column: sa.ColumnElement[Any], *, now: float) -> Field:
    """A field that holds a time.

    Args:
        column: Seconds since 1970.
        now: What times such as ``-2h`` count from.
    """

    def compare(asked: Comparison) -> Condition:
        value = _as_time(asked.value, now)
        if value is None or asked.operator not in _ORDERS:
            raise asked.wrong(
                "compare it by < or > with a time such as 2026-01-31, 2026-01-31T14:03 or -2h (two hours ago)"
            )
        return compared(column, asked.operator, value)

    return compare


def compared(column: sa.ColumnElement[Any], operator: str, value: object) -> Condition:
    """Compares a value; what has none is unequal to all."""
    found = _ORDERS[operator](column, value)
    return sa.or_(column.is_(None), found) if operator == "!=" else found


def as_number(value: str) -> float | None:
    """Reads a number; None for another text, and for numbers that are not finite."""
    percent = value.endswith("%")
    try:
        read = float(value.removesuffix("%")) / (100 if percent else 1)
    except ValueError:
        return None
    return read if math.isfinite(read) else None


def _as_time(value: str, now: float) -> float | None:
    ago = _AGO.fullmatch(value)
    if ago is not None:
        return now - int(ago[1]) * _SECONDS[ago[2]]
    try:
        read = datetime.fromisoformat(value)
        return (read if read.tzinfo else read.replace(tzinfo=timezone.utc)).timestamp()
    except (ValueError, OverflowError):
        return None
