"""The states of an experiment."""

from __future__ import annotations

from enum import Enum

from resolute_experiments.states.table import Row, Table, rows_for


class ExperimentState(Enum):
    """The state of an experiment."""

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
    """An event of an experiment. The value names the requested change in messages."""

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
    UNARCHIVE = "shown again"
    DELETE = "DELETED"
    FILES_DELETED = "fully DELETED"
    DELETION_FAILED = "DELETE_FAILED"
    UNMANAGED_RUN_STARTED = "ACTIVE outside of the cluster"
    UNMANAGED_RUNS_COMPLETED = "COMPLETED outside of the cluster"
    UNMANAGED_RUNS_FAILED = "ERROR outside of the cluster"
    UNMANAGED_RUNS_KILLED = "KILLED outside of the cluster"


class ExperimentEffect(Enum):
    """A side effect of an event of an experiment. The value is its description for people."""

    RECORD = "an audit row"
    PAUSE_TRIALS = "PAUSE for each trial"
    ACTIVATE_TRIALS = "ACTIVATE for each trial"
    CANCEL_TRIALS = "CANCEL for each trial, the reason of signals is USER"
    END_TRIALS = "CANCEL for each trial, the reason of signals is SEARCH"
    KILL_TRIALS = "KILL for each trial"
    ADMIT = "quotas are checked as for a new one"
    END = "its end time is set; a completed one has progress 1"
    CLEAR_END = "its end time and its failure are cleared, it is unarchived"
    REMOVE_CODE = "its code is removed, its row stays as a tombstone"


_S, _E, _F = ExperimentState, ExperimentEvent, ExperimentEffect
_GOING = (_S.ACTIVE, _S.PAUSED)
_STOPPING = (_S.STOPPING_COMPLETED, _S.STOPPING_CANCELED, _S.STOPPING_KILLED, _S.STOPPING_ERROR)
_ENDED = (_S.COMPLETED, _S.CANCELED, _S.ERROR)

EXPERIMENTS: Table[ExperimentState, ExperimentEvent, ExperimentEffect] = Table(
    [
        Row(event=_E.PAUSE, before=(_S.ACTIVE,), after=_S.PAUSED, effects=(_F.RECORD, _F.PAUSE_TRIALS)),
        Row(event=_E.PAUSE, before=(_S.PAUSED,)),
        Row(
            event=_E.ACTIVATE,
            before=(_S.PAUSED,),
            after=_S.ACTIVE,
            effects=(_F.RECORD, _F.ACTIVATE_TRIALS),
        ),
        Row(event=_E.ACTIVATE, before=(_S.ACTIVE,)),
        Row(event=_E.CONTINUE, before=_ENDED, after=_S.ACTIVE, effects=(_F.ADMIT, _F.CLEAR_END)),
        Row(
            event=_E.CONTINUE,
            before=(_S.PAUSED,),
            after=_S.ACTIVE,
            effects=(_F.CLEAR_END, _F.ACTIVATE_TRIALS),
        ),
        Row(event=_E.CONTINUE, before=(_S.ACTIVE,), effects=(_F.CLEAR_END,)),
        Row(
            event=_E.CANCEL,
            before=_GOING,
            after=_S.STOPPING_CANCELED,
            effects=(_F.RECORD, _F.CANCEL_TRIALS),
        ),
        Row(event=_E.CANCEL, before=(_S.STOPPING_CANCELED,)),
        Row(
            event=_E.KILL,
            before=(*_GOING, _S.STOPPING_COMPLETED, _S.STOPPING_CANCELED, _S.STOPPING_ERROR),
            after=_S.STOPPING_KILLED,
            effects=(_F.RECORD, _F.KILL_TRIALS),
        ),
        Row(event=_E.KILL, before=(_S.STOPPING_KILLED,)),
        *rows_for(
            {
                _E.SEARCH_COMPLETED: _S.STOPPING_COMPLETED,
                _E.SEARCH_CANCELED: _S.STOPPING_CANCELED,
                _E.SEARCH_FAILED: _S.STOPPING_ERROR,
            },
            before=_GOING,
            effects=(_F.RECORD, _F.END_TRIALS),
        ),
        # A search may shut down while its experiment stops for another reason already: that reason stands.
        Row(event=_E.SEARCH_COMPLETED, before=_STOPPING),
        Row(event=_E.SEARCH_CANCELED, before=_STOPPING),
        Row(event=_E.SEARCH_FAILED, before=_STOPPING),
        Row(
            event=_E.LAST_TRIAL_ENDED,
            before=(_S.STOPPING_COMPLETED,),
            after=_S.COMPLETED,
            effects=(_F.END,),
        ),
        Row(
            event=_E.LAST_TRIAL_ENDED,
            before=(_S.STOPPING_CANCELED, _S.STOPPING_KILLED),
            after=_S.CANCELED,
            effects=(_F.END,),
        ),
        Row(event=_E.LAST_TRIAL_ENDED, before=(_S.STOPPING_ERROR,), after=_S.ERROR, effects=(_F.END,)),
        Row(event=_E.ARCHIVE, before=_ENDED, effects=(_F.RECORD,)),
        Row(event=_E.UNARCHIVE, before=_ENDED, effects=(_F.RECORD,)),
        Row(event=_E.DELETE, before=(*_ENDED, _S.DELETE_FAILED), after=_S.DELETING, effects=(_F.RECORD,)),
        Row(event=_E.FILES_DELETED, before=(_S.DELETING,), after=_S.DELETED, effects=(_F.REMOVE_CODE,)),
        Row(event=_E.DELETION_FAILED, before=(_S.DELETING,), after=_S.DELETE_FAILED),
        Row(
            event=_E.UNMANAGED_RUN_STARTED,
            before=(_S.ACTIVE, *_ENDED),
            after=_S.ACTIVE,
            effects=(_F.CLEAR_END,),
        ),
        # A run that counted as lost may tell its end after the others have ended.
        *rows_for(
            {_E.UNMANAGED_RUNS_COMPLETED: _S.COMPLETED, _E.UNMANAGED_RUNS_FAILED: _S.ERROR},
            before=(_S.ACTIVE, *_ENDED),
            effects=(_F.END,),
        ),
        Row(event=_E.UNMANAGED_RUNS_KILLED, before=(_S.ACTIVE,), after=_S.CANCELED, effects=(_F.END,)),
    ],
    remedies={
        _E.PAUSE: "only an ACTIVE experiment can be paused",
        _E.ACTIVATE: "only a PAUSED experiment can be activated",
        _E.CONTINUE: "wait until it has ended",
        _E.CANCEL: "only an experiment that has not ended can be cancelled",
        _E.KILL: "only an experiment that has not ended can be killed",
        _E.ARCHIVE: "wait until it has ended, or cancel it first",
        _E.UNARCHIVE: "wait until it has ended, or cancel it first",
        _E.DELETE: "wait until it has ended, or cancel it first",
        _E.UNMANAGED_RUN_STARTED: "it was deleted; use another external id",
    },
)
"""Where each event leads an experiment from each state, and what it does besides."""

ENDED_EXPERIMENTS = frozenset(_ENDED)
"""States in which nothing of an experiment runs any more and nothing was removed yet."""
GONE_EXPERIMENTS = frozenset({_S.DELETING, _S.DELETED, _S.DELETE_FAILED})
"""States in which an experiment is being removed, or is."""
STOPPING_EXPERIMENTS = frozenset(_STOPPING)
"""States in which an experiment waits for its last trials."""
LIVE_EXPERIMENTS = frozenset({*_GOING, *_STOPPING})
"""States in which an experiment has a controller."""
