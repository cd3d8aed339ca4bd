"""The end of runs and trials, written with everything that others must be told of it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.engine import Connection

from resolute_experiments.settle import Decision, Exit, SearchEvent
from resolute_experiments.states import ENDED_TRIALS, TrialState
from resolute_experiments.store import outbox, runs, trials


@dataclass(frozen=True, kw_only=True)
class Sealed:
    """What the other services said when the run was sealed."""

    operation_length: int
    """Length of the trial's current operation."""
    operation_completed: bool
    """Whether it was completed."""
    operation_closed: bool
    """Whether the search closed the trial."""
    checkpoint_id: str
    """The trial's latest checkpoint; empty when it has none of its own."""
    steps_completed: int
    """Steps completed there."""


def end_trial(
    connection: Connection,
    trial: trials.Trial,
    *,
    state: TrialState,
    search_event: SearchEvent | None,
    now: float,
    explanation: str = "",
) -> None:
    """Ends a trial that has no processes, and leaves word for the search and for followers of its logs."""
    trials.update(connection, trial, state=state.value, ended_at=now, explanation=explanation)
    announce_end(connection, trial, search_event)


def announce_end(connection: Connection, trial: trials.Trial, search_event: SearchEvent | None) -> None:
    """Leaves word that a trial ended. Identifiers derive from the trial: a repetition is no second event."""
    if search_event is not None:
        outbox.put(
            connection,
            event_id=f"{trial.id}/{trial.run}/ended",
            experiment_id=trial.experiment_id,
            kind=outbox.Kind.TRIAL_ENDED,
            payload={"request_id": trial.request_id, "event": search_event.value},
        )
    outbox.put(
        connection,
        event_id=f"{trial.id}/{trial.run}/logs",
        experiment_id=trial.experiment_id,
        kind=outbox.Kind.LOGS_CLOSED,
        payload={"trial_id": trial.id},
    )


def write_decision(
    connection: Connection,
    trial: trials.Trial,
    run: runs.Run,
    *,
    exit_: Exit,
    failure: str,
    sealed: Sealed,
    decision: Decision,
    now: float,
) -> None:
    """Writes what the end of a run means for it and for its trial; a second time changes nothing."""
    if runs.get(connection, run.allocation_id).ended:
        return
    runs.update(
        connection,
        run.allocation_id,
        outcome=decision.outcome.value,
        exit_code=None if exit_.lost else exit_.exit_code,
        failure=failure,
        ended_at=now,
        acknowledged=exit_.acknowledged,
    )
    ended = decision.trial in ENDED_TRIALS
    trials.update(
        connection,
        trial,
        state=decision.trial.value,
        restarts=trial.restarts + int(decision.counts_as_restart),
        latest_checkpoint_id=sealed.checkpoint_id or trial.latest_checkpoint_id,
        steps_completed=sealed.steps_completed if sealed.checkpoint_id else trial.steps_completed,
        settled_length=sealed.operation_length if sealed.operation_completed else trial.settled_length,
        closed=trial.closed or sealed.operation_closed,
        explanation=_explanation(decision, failure),
        status="",
        queued_at=now if decision.trial is TrialState.QUEUED else trial.queued_at,
        ended_at=now if ended else None,
    )
    if ended:
        announce_end(connection, trial, decision.search_event)


def _explanation(decision: Decision, failure: str) -> str:
    if not failure:
        return ""
    last_line = failure.strip().splitlines()[-1]
    return f"{decision.outcome.value.lower()}: {last_line}"[:500]
