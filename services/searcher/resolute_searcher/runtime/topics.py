"""The topics of changes of a search."""

from __future__ import annotations

from enum import Enum, auto


class Aspect(Enum):
    """An aspect of a search that changes independently of others."""

    LOG = auto()
    """It has new entries, was begun or was deleted."""
    ACTIONS = auto()
    """Its log has new actions."""
    PROGRESS = auto()
    """Trials of it went on, while its log is as it was."""


Topic = tuple[str, Aspect]
"""UUID of a search, and what of it changes."""


def everything(search_id: str) -> list[Topic]:
    """Returns all topics of a search."""
    return [(search_id, aspect) for aspect in Aspect]
