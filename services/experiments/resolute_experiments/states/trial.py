"""The states of a trial."""

from __future__ import annotations

from enum import Enum

from resolute_experiments.states.table import Row, Table, rows_for


class TrialState(Enum):
    """The state of a trial."""

    QUEUED = "QUEUED"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    PAUSED = "PAUSED"
    WAITING = "WAITING"
    COMPLETED = "COMPLETED"
    CANCELED = "CANCELED"
    ERROR = "ERROR"


class TrialEvent(Enum):
    """An event of a trial. The value names the requested change in messages."""

    PAUSE = "PAUSED"
    ACTIVATE = "QUEUED"
    PLACE = "STARTING"
    CONFIRM_RUNNING = "RUNNING"
    PREEMPT = "preempted"
    GO_BACK = "taken back by its guard"
    CONTAINERS_ENDED = "STOPPING"
    ASSIGN_OPERATION = "given work"
    CLOSE = "closed"
    STOP = "COMPLETED by its search"
    CANCEL = "CANCELED"
    KILL = "KILLED"
    FAIL_UNSCHEDULABLE = "ERROR for want of a machine"
    REOPEN = "QUEUED again"
    REOPEN_IDLE = "WAITING again"
    RUN_FINISHED = "COMPLETED"
    RUN_EXITED_EARLY = "COMPLETED by itself"
    RUN_INVALID = "COMPLETED for its hyperparameters"
    RUN_INVALID_AT_INIT = "COMPLETED for its hyperparameters, at once"
    RUN_CANCELED = "CANCELED after a run"
    RUN_IDLE = "WAITING"
    RUN_RESUMES = "QUEUED after a run"
    RUN_RETRIED = "QUEUED after a failure"
    RUN_FAILED = "ERROR"
    RUN_FAILED_BY_POLICY = "ERROR by a log policy"
    UNMANAGED_RUN_STARTED = "RUNNING outside of the cluster"
    UNMANAGED_RUN_COMPLETED = "COMPLETED outside of the cluster"
    UNMANAGED_RUN_FAILED = "ERROR outside of the cluster"
    UNMANAGED_RUN_KILLED = "KILLED outside of the cluster"


class TrialEffect(Enum):
    """A side effect of an event of a trial. The value is its description for people."""

    ENQUEUE = "it joins the end of the queue"
    BEGIN_RUN = "its next run begins"
    SIGNAL = "PREEMPT for its allocation"
    KILL = "KILL for its allocation"
    MARK_KILLED = "it is marked as killed by a person"
    MARK_CLOSED = "it is marked as closed by its search"
    COUNT_RESTART = "its restart count goes up by one"
    REEVALUATE_EXIT = "the end of its run is evaluated again, if it is being evaluated"
    RESET_RESTARTS = "its restart count and its marks are reset"
    CLEAR_END = "its end time is cleared"
    END = "its end time is set, its logs are closed"
    NOTIFY_CLOSED = "the search receives its closing"
    NOTIFY_ERRORED = "the search receives ERRORED"
    NOTIFY_STOPPED = "the search receives USER_REQUESTED_STOP"
    NOTIFY_CANCELED = "the search receives USER_CANCELED"
    NOTIFY_INVALID = "the search receives INVALID_HP"
    NOTIFY_INVALID_AT_INIT = "the search receives INIT_INVALID_HP"


_S, _E, _F = TrialState, TrialEvent, TrialEffect
_IDLE = (_S.QUEUED, _S.PAUSED, _S.WAITING)
_ALLOCATED = (_S.STARTING, _S.RUNNING, _S.STOPPING)
_ENDED = (_S.COMPLETED, _S.CANCELED, _S.ERROR)

TRIALS: Table[TrialState, TrialEvent, TrialEffect] = Table(
    [
        Row(event=_E.PAUSE, before=(_S.QUEUED,), after=_S.PAUSED),
        Row(event=_E.PAUSE, before=(_S.PAUSED, _S.WAITING)),
        Row(event=_E.PAUSE, before=_ALLOCATED, after=_S.STOPPING, effects=(_F.SIGNAL,)),
        Row(event=_E.ACTIVATE, before=(_S.PAUSED,), after=_S.QUEUED, effects=(_F.ENQUEUE,)),
        # Those that were asked to leave do so first, and queue again then.
        Row(event=_E.ACTIVATE, before=(_S.QUEUED, _S.WAITING, *_ALLOCATED)),
        Row(event=_E.PLACE, before=(_S.QUEUED,), after=_S.STARTING, effects=(_F.BEGIN_RUN,)),
        Row(event=_E.CONFIRM_RUNNING, before=(_S.STARTING,), after=_S.RUNNING),
        Row(event=_E.CONFIRM_RUNNING, before=(_S.RUNNING, _S.STOPPING)),
        Row(event=_E.PREEMPT, before=_ALLOCATED, after=_S.STOPPING, effects=(_F.SIGNAL,)),
        # Nothing that it would write now is wanted.
        Row(event=_E.GO_BACK, before=_ALLOCATED, after=_S.STOPPING, effects=(_F.KILL,)),
        Row(event=_E.CONTAINERS_ENDED, before=_ALLOCATED, after=_S.STOPPING),
        Row(event=_E.ASSIGN_OPERATION, before=(_S.WAITING,), after=_S.QUEUED, effects=(_F.ENQUEUE,)),
        # Anyone who runs asks for its work itself, or has just ended for want of any.
        Row(event=_E.ASSIGN_OPERATION, before=_ALLOCATED, effects=(_F.REEVALUATE_EXIT,)),
        # A trial that has ended was closed before it could get more.
        Row(event=_E.ASSIGN_OPERATION, before=(_S.QUEUED, _S.PAUSED, *_ENDED)),
        Row(
            event=_E.CLOSE,
            before=(_S.WAITING,),
            after=_S.COMPLETED,
            effects=(_F.MARK_CLOSED, _F.NOTIFY_CLOSED, _F.END),
        ),
        Row(
            event=_E.CLOSE,
            before=(_S.QUEUED, _S.PAUSED, *_ALLOCATED, *_ENDED),
            effects=(_F.MARK_CLOSED,),
        ),
        Row(
            event=_E.STOP,
            before=_IDLE,
            after=_S.COMPLETED,
            effects=(_F.MARK_CLOSED, _F.NOTIFY_CLOSED, _F.END),
        ),
        Row(
            event=_E.STOP,
            before=_ALLOCATED,
            after=_S.STOPPING,
            effects=(_F.MARK_CLOSED, _F.SIGNAL),
        ),
        Row(event=_E.STOP, before=_ENDED),
        Row(event=_E.CANCEL, before=_IDLE, after=_S.CANCELED, effects=(_F.NOTIFY_CANCELED, _F.END)),
        Row(event=_E.CANCEL, before=_ALLOCATED, after=_S.STOPPING, effects=(_F.SIGNAL,)),
        Row(
            event=_E.KILL,
            before=_IDLE,
            after=_S.CANCELED,
            effects=(_F.MARK_KILLED, _F.NOTIFY_CANCELED, _F.END),
        ),
        Row(event=_E.KILL, before=_ALLOCATED, after=_S.STOPPING, effects=(_F.MARK_KILLED, _F.KILL)),
        Row(
            event=_E.FAIL_UNSCHEDULABLE,
            before=(_S.QUEUED,),
            after=_S.ERROR,
            effects=(_F.NOTIFY_ERRORED, _F.END),
        ),
        Row(event=_E.REOPEN, before=_ENDED, after=_S.QUEUED, effects=(_F.RESET_RESTARTS, _F.ENQUEUE)),
        Row(event=_E.REOPEN_IDLE, before=_ENDED, after=_S.WAITING, effects=(_F.RESET_RESTARTS,)),
        *(
            Row(event=event, before=_ALLOCATED, after=after, effects=effects)
            for event, after, effects in (
                (_E.RUN_FINISHED, _S.COMPLETED, (_F.NOTIFY_CLOSED, _F.END)),
                (_E.RUN_EXITED_EARLY, _S.COMPLETED, (_F.NOTIFY_STOPPED, _F.END)),
                (_E.RUN_INVALID, _S.COMPLETED, (_F.NOTIFY_INVALID, _F.END)),
                (_E.RUN_INVALID_AT_INIT, _S.COMPLETED, (_F.NOTIFY_INVALID_AT_INIT, _F.END)),
                (_E.RUN_CANCELED, _S.CANCELED, (_F.NOTIFY_CANCELED, _F.END)),
                (_E.RUN_IDLE, _S.WAITING, ()),
                (_E.RUN_RESUMES, _S.QUEUED, (_F.ENQUEUE,)),
                (_E.RUN_RETRIED, _S.QUEUED, (_F.COUNT_RESTART, _F.ENQUEUE)),
                (_E.RUN_FAILED, _S.ERROR, (_F.NOTIFY_ERRORED, _F.END)),
                (_E.RUN_FAILED_BY_POLICY, _S.ERROR, (_F.NOTIFY_ERRORED, _F.END)),
            )
        ),
        Row(
            event=_E.UNMANAGED_RUN_STARTED,
            before=(_S.RUNNING, *_ENDED),
            after=_S.RUNNING,
            effects=(_F.CLEAR_END,),
        ),
        # From ERROR: a run that counted as lost tells its end.
        *rows_for(
            {_E.UNMANAGED_RUN_COMPLETED: _S.COMPLETED, _E.UNMANAGED_RUN_FAILED: _S.ERROR},
            before=(_S.RUNNING, _S.ERROR),
            effects=(_F.END,),
        ),
        Row(
            event=_E.UNMANAGED_RUN_KILLED,
            before=(_S.RUNNING,),
            after=_S.CANCELED,
            effects=(_F.MARK_KILLED, _F.END),
        ),
    ],
    remedies={
        _E.KILL: "it has ended already",
        _E.REOPEN: "only a trial that has ended can go on again",
        _E.REOPEN_IDLE: "only a trial that has ended can go on again",
    },
)
"""Where each event leads a trial from each state, and what it does besides."""

ENDED_TRIALS = frozenset(_ENDED)
"""States that a trial never leaves by itself."""
ALLOCATED_TRIALS = frozenset(_ALLOCATED)
TRAINING_TRIALS = frozenset({TrialState.RUNNING, TrialState.STOPPING})
"""States in which a trial has slots and processes."""
