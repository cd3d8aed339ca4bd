"""A part of a config that stands below or above what its author wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Layer:
    """Config below the user's own.

    Attributes:
        name: What messages call it, such as ``template 'gpu'``.
        content: Its fields, as YAML or as data; any of them may be missing.
    """

    name: str
    content: str | bytes | Mapping[str, Any]
