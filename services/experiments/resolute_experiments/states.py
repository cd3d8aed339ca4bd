"""The lives of experiments and trials as data: every state, every event, every legal transition."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from resolute.errors import IllegalTransitionError


class ExperimentState(Enum):
    """Life of an experiment."""

    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    STOPPING_COMPLETED = "STOPPING_COMPLETED"
    STOPPING_CANCELED = "STOPPING_CANCELED"
    STOPPING_KILLED = "STOPPING_KILLED"
    STOPPING_ERROR = "STOPPING_ERROR"
    COMPLETED = "COMPLETED"
    CANCELED = "CANCELED"
    ERROR = "ERROR"
    DELETING = "DELETING"
    DELETED = "DELETED"
    DELETE_FAILED = "DELETE_FAILED"


class ExperimentEvent(Enum):
    """What happens to an experiment; the value says what is asked for, in messages."""

    PAUSE = "PAUSED"
    ACTIVATE = "ACTIVE"
    CONTINUE = "ACTIVE again"
    CANCEL = "CANCELED"
    KILL = "KILLED"
    SEARCH_COMPLETED = "COMPLETED"
    SEARCH_CANCELED = "CANCELED by its search"
    SEARCH_FAILED = "ERROR"
    LAST_TRIAL_ENDED = "ended"
    ARCHIVE = "archived"
    DELETE = "DELETED"
    FILES_DELETED = "fully DELETED"
    DELETION_FAILED = "DELETE_FAILED"


class TrialState(Enum):
    """Life of a trial."""

    QUEUED = "QUEUED"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    PAUSED = "PAUSED"
    WAITING = "WAITING"
    COMPLETED = "COMPLETED"
    CANCELED = "CANCELED"
    ERROR = "ERROR"


class RunOutcome(Enum):
    """How a run ended; UNSPECIFIED while it has not."""

    UNSPECIFIED = "UNSPECIFIED"
    COMPLETED = "COMPLETED"
    PREEMPTED = "PREEMPTED"
    FAILED = "FAILED"
    LOST = "LOST"
    KILLED = "KILLED"
    INVALID_HP = "INVALID_HP"


_S, _E = ExperimentState, ExperimentEvent
_STOPPING = {
    _S.STOPPING_COMPLETED: _S.COMPLETED,
    _S.STOPPING_CANCELED: _S.CANCELED,
    _S.STOPPING_KILLED: _S.CANCELED,
    _S.STOPPING_ERROR: _S.ERROR,
}

EXPERIMENT_TRANSITIONS: Mapping[tuple[ExperimentState, ExperimentEvent], ExperimentState] = {
    **{(live, _E.PAUSE): _S.PAUSED for live in (_S.ACTIVE, _S.PAUSED)},
    **{(live, _E.ACTIVATE): _S.ACTIVE for live in (_S.ACTIVE, _S.PAUSED)},
    **{
        (going, _E.CONTINUE): _S.ACTIVE
        for going in (_S.ACTIVE, _S.PAUSED, _S.COMPLETED, _S.CANCELED, _S.ERROR)
    },
    **{(live, _E.CANCEL): _S.STOPPING_CANCELED for live in (_S.ACTIVE, _S.PAUSED, _S.STOPPING_CANCELED)},
    **{(live, _E.KILL): _S.STOPPING_KILLED for live in (_S.ACTIVE, _S.PAUSED, *_STOPPING)},
    **{(live, _E.SEARCH_COMPLETED): _S.STOPPING_COMPLETED for live in (_S.ACTIVE, _S.PAUSED)},
    **{(live, _E.SEARCH_CANCELED): _S.STOPPING_CANCELED for live in (_S.ACTIVE, _S.PAUSED)},
    **{(live, _E.SEARCH_FAILED): _S.STOPPING_ERROR for live in (_S.ACTIVE, _S.PAUSED)},
    # A search may shut down while its experiment is already stopping for another reason: that reason stands.
    **{
        (stopping, event): stopping
        for stopping in _STOPPING
        for event in (_E.SEARCH_COMPLETED, _E.SEARCH_CANCELED, _E.SEARCH_FAILED)
    },
    **{(stopping, _E.LAST_TRIAL_ENDED): ended for stopping, ended in _STOPPING.items()},
    **{(ended, _E.ARCHIVE): ended for ended in (_S.COMPLETED, _S.CANCELED, _S.ERROR)},
    **{(ended, _E.DELETE): _S.DELETING for ended in (_S.COMPLETED, _S.CANCELED, _S.ERROR, _S.DELETE_FAILED)},
    (_S.DELETING, _E.FILES_DELETED): _S.DELETED,
    (_S.DELETING, _E.DELETION_FAILED): _S.DELETE_FAILED,
}
"""Where each event leads from each state; what is not here is illegal."""

_REMEDIES: Mapping[ExperimentEvent, str] = {
    _E.PAUSE: "only an ACTIVE experiment can be paused",
    _E.ACTIVATE: "only a PAUSED experiment can be activated",
    _E.CONTINUE: "wait until it has ended",
    _E.CANCEL: "only an experiment that has not ended can be cancelled",
    _E.KILL: "only an experiment that has not ended can be killed",
    _E.ARCHIVE: "wait until it has ended, or cancel it first",
    _E.DELETE: "wait until it has ended, or cancel it first",
}

ENDED_EXPERIMENTS = frozenset({_S.COMPLETED, _S.CANCELED, _S.ERROR})
"""States in which nothing of an experiment runs any more and nothing was removed yet."""
GONE_EXPERIMENTS = frozenset({_S.DELETING, _S.DELETED})
"""States in which an experiment is being removed, or is."""
STOPPING_EXPERIMENTS = frozenset(_STOPPING)
"""States in which an experiment waits for its last trials."""
LIVE_EXPERIMENTS = frozenset({_S.ACTIVE, _S.PAUSED, *_STOPPING})
"""States in which the reconciler has work with an experiment."""
ENDED_TRIALS = frozenset({TrialState.COMPLETED, TrialState.CANCELED, TrialState.ERROR})
"""States that a trial never leaves by itself."""
ALLOCATED_TRIALS = frozenset({TrialState.STARTING, TrialState.RUNNING, TrialState.STOPPING})
"""States in which a trial has slots and processes."""


def next_state(current: ExperimentState, event: ExperimentEvent, *, resource: str) -> ExperimentState:
    """Returns the state that an event leads to.

    Args:
        current: The state now.
        event: What happens.
        resource: The experiment, for the message.

    Raises:
        IllegalTransitionError: The event is not legal in this state.
    """
    following = EXPERIMENT_TRANSITIONS.get((current, event))
    if following is None:
        raise IllegalTransitionError.between(
            resource, from_state=current.value, to_state=event.value, remedy=_REMEDIES.get(event, "")
        )
    return following
