"""The reasons of events, derived from the state before them."""

from __future__ import annotations

from resolute_searcher.log.events import (
    Event,
    Extended,
    OperationsPosted,
    Retried,
    Started,
    Suggested,
    TrialClosed,
    TrialCreated,
    TrialExited,
    TrialFenced,
    ValidationCompleted,
)
from resolute_searcher.log.reasons import Reason, ReasonKind
from resolute_searcher.state_machine.state import SearchState


def event_reason(search: SearchState, event: Event) -> Reason:
    """Returns the reason of an event that the search is about to record."""
    match event:
        case Started():
            return Reason(ReasonKind.SEARCH_CREATED)
        case OperationsPosted():
            return Reason(ReasonKind.CLIENT_DECISION, cause_sequence=event.answers)
        case Suggested():
            return Reason(ReasonKind.SUGGESTION_REQUESTED, cause_sequence=search.requested_at)
        case Extended():
            return Reason(ReasonKind.USER_REQUEST)
    return Reason(
        _kind_of_trial_event(search, event), cause_sequence=search.trials[event.trial_key].decided_at or None
    )


def _kind_of_trial_event(search: SearchState, event: Event) -> ReasonKind:
    match event:
        case TrialCreated():
            return ReasonKind.ACTION_APPLIED
        case ValidationCompleted(trial_key) if trial_key in search.repeated:
            return ReasonKind.LENGTH_REACHED_BEFORE
        case TrialExited():
            return ReasonKind.EXITED
        case TrialFenced():
            return ReasonKind.RUN_ENDED
        case Retried():
            return ReasonKind.USER_REQUEST
        case TrialClosed(trial_key):
            trial = search.trials[trial_key]
            if trial.exit is not None:
                return ReasonKind.EXITED
            return ReasonKind.CLOSED_BY_SEARCH if trial.closing else ReasonKind.ENDED_BY_ITSELF
    return ReasonKind.TRIAL_REPORTED
