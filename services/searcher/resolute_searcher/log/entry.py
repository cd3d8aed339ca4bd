"""One entry of a search's log: an event with what the search decided upon it."""

from __future__ import annotations

from dataclasses import dataclass, field

from resolute_searcher.log.actions import Action
from resolute_searcher.log.events import Event
from resolute_searcher.log.operations import Operation
from resolute_searcher.log.reasons import NOT_RECORDED, Reason


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a search's log: an event, and all that it caused.

    Attributes:
        sequence: Position in the log, from 1.
        event: What happened.
        operations: What the search decided, in order.
        actions: What others must do for it, in order.
        last_action: Position of the last of all actions so far; those of this entry are numbered up to it.
        draws: Random words that the search had taken when the entry was complete.
        reason: Why the event happened.
    """

    sequence: int
    event: Event
    operations: tuple[Operation, ...]
    actions: tuple[Action, ...]
    last_action: int
    draws: int
    reason: Reason = field(default=NOT_RECORDED, compare=False, repr=False)
