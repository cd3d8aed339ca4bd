"""The states of an allocation: the slots of one run, and its signal."""

from __future__ import annotations

from enum import Enum

from resolute_experiments.states.table import Row, Table


class AllocationState(Enum):
    """The state of an allocation. It is stored as marks of its run: asked, acknowledged, killed, settled."""

    GRANTED = "GRANTED"
    EXITING = "EXITING"
    SIGNALED = "SIGNALED"
    ACKNOWLEDGED = "ACKNOWLEDGED"
    KILLED = "KILLED"
    FREED = "FREED"


class AllocationEvent(Enum):
    """An event of an allocation. The value names the requested change in messages."""

    PREEMPT = "preempted"
    ACKNOWLEDGE = "acknowledged"
    KILL = "KILLED"
    FREE = "FREED"


class AllocationEffect(Enum):
    """A side effect of an event of an allocation. The value is its description for people."""

    RAISE_PREEMPTION = "its signal is raised with a deadline: checkpoint and exit"
    RAISE_KILL = "its signal is raised: its processes end now"
    RECORD_ACKNOWLEDGMENT = "the exit that follows counts as agreed"
    RELEASE_SLOTS = "its slots are given back, its outcome is written"


_S, _E, _F = AllocationState, AllocationEvent, AllocationEffect
_HELD = (_S.GRANTED, _S.EXITING, _S.SIGNALED, _S.ACKNOWLEDGED, _S.KILLED)

ALLOCATIONS: Table[AllocationState, AllocationEvent, AllocationEffect] = Table(
    [
        Row(event=_E.PREEMPT, before=(_S.GRANTED,), after=_S.SIGNALED, effects=(_F.RAISE_PREEMPTION,)),
        Row(event=_E.PREEMPT, before=(_S.EXITING,), after=_S.ACKNOWLEDGED, effects=(_F.RAISE_PREEMPTION,)),
        # Anyone who was asked already keeps its deadline.
        Row(event=_E.PREEMPT, before=(_S.SIGNALED, _S.ACKNOWLEDGED, _S.KILLED)),
        # Also unasked: a script that has no operation left exits by itself and says so.
        Row(
            event=_E.ACKNOWLEDGE, before=(_S.GRANTED,), after=_S.EXITING, effects=(_F.RECORD_ACKNOWLEDGMENT,)
        ),
        Row(
            event=_E.ACKNOWLEDGE,
            before=(_S.SIGNALED,),
            after=_S.ACKNOWLEDGED,
            effects=(_F.RECORD_ACKNOWLEDGMENT,),
        ),
        Row(event=_E.ACKNOWLEDGE, before=(_S.EXITING, _S.ACKNOWLEDGED)),
        Row(event=_E.ACKNOWLEDGE, before=(_S.KILLED,), effects=(_F.RECORD_ACKNOWLEDGMENT,)),
        Row(
            event=_E.KILL,
            before=(_S.GRANTED, _S.EXITING, _S.SIGNALED, _S.ACKNOWLEDGED),
            after=_S.KILLED,
            effects=(_F.RAISE_KILL,),
        ),
        Row(event=_E.KILL, before=(_S.KILLED,)),
        Row(event=_E.FREE, before=_HELD, after=_S.FREED, effects=(_F.RELEASE_SLOTS,)),
    ],
    remedies=dict.fromkeys(_E, "its run is over; the next one has an allocation of its own"),
)
"""Where each event leads an allocation from each state, and what it does besides."""
