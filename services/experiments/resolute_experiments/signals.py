"""The signal of an allocation: checkpoint and exit. Level-triggered, with a growing revision."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from sqlalchemy.engine import Connection

from resolute_experiments.states import TrialState
from resolute_experiments.store import runs, trials

if TYPE_CHECKING:
    from resolute_experiments.lifecycle import Moment


class Reason(Enum):
    """Why an allocation is asked to exit."""

    USER = "USER"
    SCHEDULER = "SCHEDULER"
    MACHINE = "MACHINE"
    TIMEOUT = "TIMEOUT"
    SEARCH = "SEARCH"


def current_run(connection: Connection, trial: trials.Trial) -> runs.Run:
    """Reads the trial's latest run."""
    return runs.get(connection, allocation_id(trial.id, trial.run))


def allocation_id(trial_id: str, run: int) -> str:
    """Names the allocation of a run."""
    return f"{trial_id}.{run}"


def preempt(connection: Connection, trial: trials.Trial, *, reason: Reason, moment: Moment) -> None:
    """Asks a trial's current run to checkpoint and exit; a run that was asked already keeps its deadline."""
    run = current_run(connection, trial)
    if run.ended or run.preempt or run.kill:
        return
    runs.update(
        connection,
        run.allocation_id,
        preempt=True,
        signal_reason=reason.value,
        signal_revision=run.signal_revision + 1,
        signal_deadline=moment.now + run.grace(moment.preemption_timeout),
    )
    trials.update(connection, trial, state=TrialState.STOPPING.value)


def kill(connection: Connection, trial: trials.Trial, *, moment: Moment) -> None:
    """Asks for the end of a trial's current run at once, without a checkpoint."""
    run = current_run(connection, trial)
    if run.ended or run.kill:
        return
    runs.update(
        connection,
        run.allocation_id,
        kill=True,
        signal_reason=Reason.USER.value,
        signal_revision=run.signal_revision + 1,
        signal_deadline=moment.now,
    )
