"""An entry of a search's log: an event with the decisions that it caused."""

from __future__ import annotations

from dataclasses import dataclass, field

from resolute_searcher.log.actions import Action
from resolute_searcher.log.events import Event
from resolute_searcher.log.operations import Operation
from resolute_searcher.log.reasons import NOT_RECORDED, Reason


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a search's log: an event, and everything that it caused.

    Attributes:
        sequence: Position in the log, from 1.
        event: The event.
        operations: Operations that the search decided, in order.
        actions: Actions for other services, in order.
        last_action: Position of the last of all actions so far. The actions of this entry are numbered up to
            it.
        draws: Number of random words that the search had drawn when the entry was complete.
        reason: Reason of the event.
    """

    sequence: int
    event: Event
    operations: tuple[Operation, ...]
    actions: tuple[Action, ...]
    last_action: int
    draws: int
    reason: Reason = field(default=NOT_RECORDED, compare=False, repr=False)
