"""Aliases for names of release 0.1.0 that have changed since, so that old imports still work."""

from __future__ import annotations

import importlib
from typing import Any

_OLDER_NAMES = {
    "resolute.client.Determined": "Client",
    "resolute.keras.DeterminedCallback": "ResoluteCallback",
    "resolute.transformers.DetCallback": "ResoluteCallback",
}


def by_older_name(module: str, name: str) -> Any:
    """Returns the attribute of a module that had another name in 0.1.0.

    Args:
        module: Name of the module, which calls this in its ``__getattr__``.
        name: What was asked for.

    Raises:
        AttributeError: 0.1.0 had no such name either.
    """
    known = _OLDER_NAMES.get(f"{module}.{name}")
    if known is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)
    return getattr(importlib.import_module(module), known)
