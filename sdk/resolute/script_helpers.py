"""Small functions that older scripts import from ``determined.util``."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from resolute.runtime.batch_sizes import calculate_batch_sizes

__all__ = ["calculate_batch_sizes", "is_overridden", "json_encode", "merge_dicts"]


def is_overridden(full_method: Callable[..., Any], parent_class: type) -> bool:
    """Returns whether a method is another than that of a parent class.

    Args:
        full_method: The method, of an object or of a class.
        parent_class: The class that may have defined it.
    """
    name = getattr(full_method, "__name__", "")
    return getattr(parent_class, name, None) is not getattr(full_method, "__func__", full_method)


def json_encode(obj: Any, indent: int | None = None, sort_keys: bool = False) -> str:
    """Writes JSON that every reader takes.

    Numbers that JSON lacks become the texts ``NaN``, ``Infinity`` and ``-Infinity``, arrays become lists and
    members of enumerations their names; of an object with ``__json__()`` it is what that returns.

    Args:
        obj: What to write.
        indent: Spaces of each level; None for one line.
        sort_keys: Whether keys are sorted.

    Raises:
        TypeError: Something in it has no form in JSON.
    """
    return json.dumps(_plain(obj), indent=indent, sort_keys=sort_keys)


def merge_dicts(dict1: Mapping[str, Any], dict2: Mapping[str, Any]) -> dict[str, Any]:
    """Returns both dicts as one, and likewise the dicts in them; elsewhere the second has its way."""
    merged = dict(dict1)
    for key, value in dict2.items():
        before = merged.get(key)
        both = isinstance(before, Mapping) and isinstance(value, Mapping)
        merged[key] = merge_dicts(before, value) if both else value  # type: ignore[arg-type]
    return merged


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    for method in ("__json__", "tolist"):  # a form of its own, else an array of numbers
        convert = getattr(value, method, None)
        if callable(convert):
            return _plain(convert())
    return value
