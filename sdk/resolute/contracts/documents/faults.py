"""Faults of a config, and the exception that carries all of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_LONGEST_VALUE = 60
_LONGEST_INTEGER = 128  # bits; Python refuses to write down integers of very many digits


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a config.

    Attributes:
        path: Dotted path of the faulty field, such as ``bind_mounts[0].host_path``; for a document that
            cannot be read at all its ``line L, column C``.
        problem: The actual value or the defect, such as ``found -1``, ``missing`` or ``unknown field``.
        expected: The accepted values; empty if ``problem`` is sufficient.
        hint: The remedy, such as ``did you mean 'max_length'?``; may be empty.
        source: Name of the layer that has the fault (``template 'gpu'``); empty for the user's own config.
        incomplete: Whether the fault is a missing value that a lower layer may provide. Such faults count
            only once all layers are merged.
    """

    path: str
    problem: str
    expected: str = ""
    hint: str = ""
    source: str = ""
    incomplete: bool = False

    @property
    def reason(self) -> str:
        """The fault without its path, for error details that carry the path in a field of their own."""
        parts = [self.problem]
        if self.expected:
            parts.append(f"expected {self.expected}")
        if self.hint:
            parts.append(self.hint)
        return "; ".join(parts)

    def __str__(self) -> str:
        """The whole fault on one line."""
        origin = f" (in {self.source})" if self.source else ""
        return f"{self.path}{origin}: {self.reason}" if self.path else f"{self.reason}{origin}"


class ConfigError(Exception):
    """A config that is not accepted, with all its faults.

    Attributes:
        faults: The faults, in the order of the documents; never empty.
    """

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        if not self.faults:
            raise ValueError("a ConfigError needs at least one fault")
        count = "1 fault" if len(self.faults) == 1 else f"{len(self.faults)} faults"
        lines = "".join(f"\n  {fault}" for fault in self.faults)
        super().__init__(f"the experiment config has {count}:{lines}")


def describe(value: Any) -> str:
    """Show a value in a message: scalars as YAML would write them, containers by kind and size."""
    if isinstance(value, dict):
        return "a map" if value else "an empty map"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}" if value else "an empty list"
    if isinstance(value, int) and value.bit_length() > _LONGEST_INTEGER:
        return f"an integer of {value.bit_length()} bits"
    if value is None or isinstance(value, (bool, int, float, str)):
        shown = json.dumps(value, ensure_ascii=False)
        return shown if len(shown) <= _LONGEST_VALUE else shown[: _LONGEST_VALUE - 1] + "…"
    return f"a value of type {type(value).__name__}"


def dotted(location: Iterable[str | int]) -> str:
    """Write a location as users do: ``("bind_mounts", 0, "host_path")`` is ``bind_mounts[0].host_path``."""
    path = ""
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            path += f".{step}" if path else step
    return path
