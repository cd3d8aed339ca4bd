"""Warnings of a pool about configs that it accepts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol


class WarningRule(Protocol):
    """Looks for something that the user would be surprised by."""

    def warnings(self, config: Mapping[str, Any]) -> Iterable[str]:
        """The warning about a checked config at its submission: which field, what follows, and what to do."""
