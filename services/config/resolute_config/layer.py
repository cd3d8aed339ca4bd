"""A layer of a config, below or above the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Layer:
    """A config that is merged below or above the user's own.

    Attributes:
        name: Name of the layer in messages, such as ``template 'gpu'``.
        content: Fields of the layer, as YAML or as data; any of them may be missing.
    """

    name: str
    content: str | bytes | Mapping[str, Any]
