"""A pool's warnings about configs that it accepts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol


class WarningRule(Protocol):
    """Checks a config for an effect that would surprise the user."""

    def warnings(self, config: Mapping[str, Any]) -> Iterable[str]:
        """The warning about a checked config at its submission: which field, what follows, and what to do."""
