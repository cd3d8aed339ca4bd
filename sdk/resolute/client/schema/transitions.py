"""The changes of the states of trials, as plain immutable values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from resolute.api.experiments.v1 import trial_pb2, trial_transition_pb2
from resolute.api.preemption.v1 import signal_pb2
from resolute.client.schema.convert import datetime_field, enum_member
from resolute.client.schema.states import TrialState


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionRecord:
    """Something that happened to a trial and changed where it stands."""

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
    states = [
        enum_member(TrialState, trial_pb2.TrialState, number, prefix="TRIAL_STATE_")
        for number in (message.from_state, message.to_state)
    ]
    reason = signal_pb2.SignalReason.DESCRIPTOR.values_by_number.get(message.signal_reason)
    return TransitionRecord(
        time=datetime_field(message, "time"),
        event=message.event,
        from_state=states[0],
        to_state=states[1],
        run=message.run,
        signal_reason=reason.name.removeprefix("SIGNAL_REASON_") if reason and reason.number else "",
        actor=message.actor_name,
        detail=message.detail,
        search_event=message.search_event_sequence if message.HasField("search_event_sequence") else None,
    )
