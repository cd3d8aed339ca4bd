"""The syntax tree of a filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from resolute.errors import InvalidArgumentError
from resolute_serving.validation import invalid


@dataclass(frozen=True)
class Text:
    """A word without a field, which is searched for in the name."""

    text: str


@dataclass(frozen=True)
class Comparison:
    """A field compared with a value."""

    name: str
    operator: str
    """One of ``= != < <= > >= ~``; ``~`` is "contains"."""
    value: str
    position: int
    """Where the field stands in the filter, counted in characters from 1."""

    def wrong(self, message: str) -> InvalidArgumentError:
        """The error that something is wrong with it."""
        return wrong(f"{self.name}: {message}", position=self.position)


@dataclass(frozen=True)
class Negation:
    """A condition that must not hold."""

    part: Node


@dataclass(frozen=True)
class Group:
    """Conditions of which all must hold, or at least one."""

    parts: tuple[Node, ...]
    is_any: bool = False


Node: TypeAlias = "Text | Comparison | Negation | Group"


def wrong(message: str, *, position: int) -> InvalidArgumentError:
    """The error that a filter cannot be read.

    Args:
        message: What is wrong, and what to write.
        position: Where, counted in characters from 1.
    """
    return invalid("filter", f"filter, character {position}: {message}")
