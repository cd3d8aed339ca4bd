"""The signal of an allocation: checkpoint and exit. It is level-triggered, with a growing revision."""

from __future__ import annotations

from enum import Enum
from typing import Any

from sqlalchemy.engine import Connection

from resolute_experiments.states import ALLOCATIONS, AllocationEffect, AllocationEvent
from resolute_experiments.store import runs, trials
from resolute_experiments.timing import Timing


class SignalReason(Enum):
    """The reason why an allocation is asked to exit."""

    USER = "USER"
    SCHEDULER = "SCHEDULER"
    MACHINE = "MACHINE"
    TIMEOUT = "TIMEOUT"
    SEARCH = "SEARCH"
    GUARD = "GUARD"


def current_run(connection: Connection, trial: trials.Trial) -> runs.Run:
    """Reads the trial's latest run."""
    return runs.get(connection, allocation_id(trial.id, trial.run))


def allocation_id(trial_id: str, run: int) -> str:
    """Names the allocation of a run."""
    return f"{trial_id}.{run}"


def preempt(connection: Connection, run: runs.Run, *, reason: SignalReason, timing: Timing) -> None:
    """Asks a run to checkpoint and exit; one that was asked already keeps its deadline.

    Raises:
        IllegalTransitionError: The run is over.
    """
    deadline = timing.now + run.grace(timing.preemption_timeout)
    _move(connection, run, AllocationEvent.PREEMPT, signal_reason=reason.value, signal_deadline=deadline)


def kill(connection: Connection, run: runs.Run, *, reason: SignalReason, timing: Timing) -> None:
    """Asks for the end of a run at once, without a checkpoint.

    Raises:
        IllegalTransitionError: The run is over.
    """
    _move(connection, run, AllocationEvent.KILL, signal_reason=reason.value, signal_deadline=timing.now)


def acknowledge(connection: Connection, run: runs.Run) -> None:
    """Notes that a run will exit as it was asked to, or because it has nothing more to do.

    Raises:
        IllegalTransitionError: The run is over.
    """
    _move(connection, run, AllocationEvent.ACKNOWLEDGE)


def free(connection: Connection, run: runs.Run, **ended: Any) -> None:
    """Ends an allocation.

    Args:
        connection: A transaction.
        run: Its run.
        ended: Columns that say how the run ended.

    Raises:
        IllegalTransitionError: The run is over already.
    """
    _move(connection, run, AllocationEvent.FREE, **ended)


_COLUMNS = {
    AllocationEffect.RAISE_PREEMPTION: {"preempt": True},
    AllocationEffect.RAISE_KILL: {"kill": True},
    AllocationEffect.RECORD_ACKNOWLEDGMENT: {"acknowledged": True},
    AllocationEffect.RELEASE_SLOTS: {},
}
_RAISES = {AllocationEffect.RAISE_PREEMPTION, AllocationEffect.RAISE_KILL}


def _move(connection: Connection, run: runs.Run, event: AllocationEvent, **noted: Any) -> None:
    step = ALLOCATIONS.step(run.allocation, event, resource=f"allocation {run.allocation_id}")
    for effect in step.effects:
        revision = run.signal_revision + int(effect in _RAISES)
        columns = {**_COLUMNS[effect], "signal_revision": revision, **noted}
        runs.update(connection, run.allocation_id, **columns)
