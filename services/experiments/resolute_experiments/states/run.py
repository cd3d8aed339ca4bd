"""The states of a run: one attempt to execute a trial."""

from __future__ import annotations

from enum import Enum

from resolute_experiments.states.table import Row, Table, rows_for


class RunOutcome(Enum):
    """The outcome of a run; UNSPECIFIED before its end."""

    UNSPECIFIED = "UNSPECIFIED"
    COMPLETED = "COMPLETED"
    PREEMPTED = "PREEMPTED"
    FAILED = "FAILED"
    LOST = "LOST"
    KILLED = "KILLED"
    INVALID_HP = "INVALID_HP"


class RunEvent(Enum):
    """An event of a run. The value names the requested change in messages."""

    COMPLETE = "COMPLETED"
    PREEMPT = "PREEMPTED"
    FAIL = "FAILED"
    LOSE = "LOST"
    KILL = "KILLED"
    INVALIDATE = "INVALID_HP"
    UNMANAGED_RENEWED = "under way outside of the cluster"
    UNMANAGED_COMPLETED = "COMPLETED outside of the cluster"
    UNMANAGED_FAILED = "FAILED outside of the cluster"
    UNMANAGED_INVALID = "INVALID_HP outside of the cluster"
    UNMANAGED_LOST = "LOST outside of the cluster"
    UNMANAGED_KILLED = "KILLED outside of the cluster"


class RunEffect(Enum):
    """A side effect of an event of a run. The value is its description for people."""

    FINALIZE = "FREE for its allocation; its outcome is applied to its trial"
    CLEAR_END = "its end is cleared; its trial and its experiment continue"


_S, _E, _F = RunOutcome, RunEvent, RunEffect
_ENDED_OUTSIDE = (_S.COMPLETED, _S.FAILED, _S.KILLED, _S.INVALID_HP)

RUNS: Table[RunOutcome, RunEvent, RunEffect] = Table(
    [
        *rows_for(
            {
                _E.COMPLETE: _S.COMPLETED,
                _E.PREEMPT: _S.PREEMPTED,
                _E.FAIL: _S.FAILED,
                _E.LOSE: _S.LOST,
                _E.KILL: _S.KILLED,
                _E.INVALIDATE: _S.INVALID_HP,
            },
            before=(_S.UNSPECIFIED,),
            effects=(_F.FINALIZE,),
        ),
        Row(event=_E.UNMANAGED_RENEWED, before=(_S.LOST,), after=_S.UNSPECIFIED, effects=(_F.CLEAR_END,)),
        Row(event=_E.UNMANAGED_RENEWED, before=(_S.UNSPECIFIED, *_ENDED_OUTSIDE)),
        # A run outside of the cluster that only fell silent may tell later how it ended.
        *rows_for(
            {
                _E.UNMANAGED_COMPLETED: _S.COMPLETED,
                _E.UNMANAGED_FAILED: _S.FAILED,
                _E.UNMANAGED_INVALID: _S.INVALID_HP,
            },
            before=(_S.UNSPECIFIED, _S.LOST),
            effects=(_F.FINALIZE,),
        ),
        *rows_for(
            {_E.UNMANAGED_LOST: _S.LOST, _E.UNMANAGED_KILLED: _S.KILLED},
            before=(_S.UNSPECIFIED,),
            effects=(_F.FINALIZE,),
        ),
        # What has ended stays so, however often its end is reported.
        *(
            Row(event=event, before=_ENDED_OUTSIDE)
            for event in (_E.UNMANAGED_COMPLETED, _E.UNMANAGED_FAILED, _E.UNMANAGED_INVALID)
        ),
        *(
            Row(event=event, before=(_S.LOST, *_ENDED_OUTSIDE))
            for event in (_E.UNMANAGED_LOST, _E.UNMANAGED_KILLED)
        ),
    ]
)
"""Where each event leads a run from each state, and what it does besides."""
