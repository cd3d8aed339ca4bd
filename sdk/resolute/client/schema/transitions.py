"""The changes of the states of trials, as plain immutable values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from resolute.api.experiments.v1 import trial_transition_pb2
from resolute.client.schema.states import TrialState
from resolute.contracts.messages import from_message


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionRecord:
    """A change of a trial's state, with its cause."""

    time: datetime | None
    event: str
    """CREATE, or an event of the table of trials, such as PLACE."""
    from_state: TrialState
    """UNSPECIFIED for CREATE."""
    to_state: TrialState
    run: int
    """The latest run at that time; zero before the first."""
    signal_reason: str
    """Why its run was asked to exit: USER, SCHEDULER, MACHINE, TIMEOUT or SEARCH; empty when it was not."""
    actor: str
    """The user who asked for it; empty when no user did."""
    detail: str
    """Further reasons, for people."""
    search_event: int | None
    """Position in the log of its search of the event that caused it."""


def transition(message: trial_transition_pb2.TrialTransition) -> TransitionRecord:
    """Converts a change of a trial's state."""
    cause = message.search_event_sequence if message.HasField("search_event_sequence") else None
    return from_message(TransitionRecord, message, actor=message.actor_name, search_event=cause)
