"""What the end of a run means for its trial: one pure decision from settled facts.

The searcher and the checkpoints service are sealed first, so that nothing of the ended run can still change
what is decided here; their answers are among the facts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from resolute_experiments.states import STOPPING_EXPERIMENTS, ExperimentState, RunOutcome, TrialState


class EarlyExit(Enum):
    """Why a trial's own code ended early."""

    NONE = ""
    INVALID_HP = "INVALID_HP"
    INIT_INVALID_HP = "INIT_INVALID_HP"
    USER_REQUESTED_STOP = "USER_REQUESTED_STOP"


class SearchEvent(Enum):
    """What the search is told about a trial that ended for good."""

    CLOSED = "CLOSED"
    ERRORED = "ERRORED"
    USER_REQUESTED_STOP = "USER_REQUESTED_STOP"
    USER_CANCELED = "USER_CANCELED"
    INVALID_HP = "INVALID_HP"
    INIT_INVALID_HP = "INIT_INVALID_HP"


@dataclass(frozen=True, kw_only=True)
class Exit:
    """How the processes of a run ended."""

    lost: bool = False
    """Machine or supervisor was lost, so that nobody saw the end."""
    exit_code: int = 0
    """Exit code of the entrypoint."""
    forced: bool = False
    """Whether it was ended because it had not obeyed its signal in time."""
    acknowledged: bool = False
    """Whether it exited because of a signal, or because it had no operation left."""
    early_exit: EarlyExit = EarlyExit.NONE
    """What its code said."""


@dataclass(frozen=True, kw_only=True)
class Operation:
    """Where the trial stood in its search when it was sealed."""

    driven: bool
    """Whether the search works by operations; if not, an exit 0 is the trial's own end."""
    completed: bool
    """Whether the current operation was completed."""
    closed: bool
    """Whether the search closed the trial."""

    @property
    def stopped(self) -> bool:
        """Whether the search stopped the trial by a signal."""
        return self.closed and not self.driven


@dataclass(frozen=True, kw_only=True)
class Situation:
    """The platform's side at the moment of the decision."""

    experiment: ExperimentState
    """State of the experiment."""
    kill_requested: bool
    """Whether the trial itself was killed on request."""
    restarts: int
    """Restarts so far."""
    max_restarts: int
    """Restarts that the config allows."""
    retries_cancelled: bool = False
    """Whether a log policy matched a line of the run and forbids restarts."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What becomes of the run and the trial."""

    outcome: RunOutcome
    """How the run ended."""
    trial: TrialState
    """The trial's next state."""
    counts_as_restart: bool = False
    """Whether the trial's restarts grow by one."""
    search_event: SearchEvent | None = None
    """What the search is told; None while the trial is not over, or when nobody asks any more."""


def settle(exit_: Exit, operation: Operation, situation: Situation) -> Decision:
    """Decides what the end of a run means.

    Args:
        exit_: How the run ended.
        operation: What the searcher's seal said.
        situation: The platform's side.
    """
    state = situation.experiment
    if situation.kill_requested or state is ExperimentState.STOPPING_KILLED:
        return Decision(
            outcome=RunOutcome.KILLED, trial=TrialState.CANCELED, search_event=SearchEvent.USER_CANCELED
        )
    if exit_.early_exit is not EarlyExit.NONE and not exit_.lost:
        return _ended_early(exit_.early_exit)
    outcome = _outcome(exit_, operation)
    if operation.stopped:
        # However it left, it is not to train any more: a failure on the way out is no reason to begin again.
        return Decision(outcome=outcome, trial=TrialState.COMPLETED, search_event=SearchEvent.CLOSED)
    finished = outcome is RunOutcome.COMPLETED and not (operation.driven and not operation.closed)
    if finished and (operation.completed or not operation.driven):
        return Decision(outcome=outcome, trial=TrialState.COMPLETED, search_event=SearchEvent.CLOSED)
    if state in STOPPING_EXPERIMENTS:
        return Decision(outcome=outcome, trial=TrialState.CANCELED, search_event=SearchEvent.USER_CANCELED)
    if outcome is RunOutcome.COMPLETED and operation.completed:
        return Decision(outcome=outcome, trial=TrialState.WAITING)
    if outcome is RunOutcome.COMPLETED:
        return Decision(
            outcome=outcome, trial=TrialState.COMPLETED, search_event=SearchEvent.USER_REQUESTED_STOP
        )
    if outcome is RunOutcome.FAILED and situation.retries_cancelled:
        return Decision(outcome=outcome, trial=TrialState.ERROR, search_event=SearchEvent.ERRORED)
    if outcome is RunOutcome.FAILED and situation.restarts >= situation.max_restarts:
        return Decision(
            outcome=outcome,
            trial=TrialState.ERROR,
            counts_as_restart=True,
            search_event=SearchEvent.ERRORED,
        )
    again = TrialState.PAUSED if state is ExperimentState.PAUSED else TrialState.QUEUED
    return Decision(outcome=outcome, trial=again, counts_as_restart=outcome is RunOutcome.FAILED)


def _ended_early(reason: EarlyExit) -> Decision:
    outcome = RunOutcome.COMPLETED if reason is EarlyExit.USER_REQUESTED_STOP else RunOutcome.INVALID_HP
    return Decision(outcome=outcome, trial=TrialState.COMPLETED, search_event=SearchEvent(reason.value))


def _outcome(exit_: Exit, operation: Operation) -> RunOutcome:
    if exit_.lost:
        return RunOutcome.LOST
    if exit_.exit_code != 0:
        # Whoever is ended for being slow has not failed: a pause must not use up a restart.
        return RunOutcome.PREEMPTED if exit_.forced else RunOutcome.FAILED
    if exit_.acknowledged and not operation.completed and not operation.stopped:
        return RunOutcome.PREEMPTED
    return RunOutcome.COMPLETED
