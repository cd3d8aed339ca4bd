"""The end of runs and trials, written with everything that others must be told of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.engine import Connection

from resolute_experiments.policies import Findings
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


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What is known of a run that ended."""

    exit: Exit
    """How its processes ended."""
    failure: str
    """Why it failed, for people."""
    sealed: Sealed
    """What the other services said."""
    findings: Findings = field(default_factory=Findings)
    """What log policies make of its lines."""


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
            event_id=f"{_life(trial)}/ended",
            experiment_id=trial.experiment_id,
            kind=outbox.Kind.TRIAL_ENDED,
            payload={"request_id": trial.request_id, "event": search_event.value},
        )
    outbox.put(
        connection,
        event_id=f"{_life(trial)}/logs",
        experiment_id=trial.experiment_id,
        kind=outbox.Kind.LOGS_CLOSED,
        payload={"trial_id": trial.id},
    )


def _life(trial: trials.Trial) -> str:
    return f"{trial.id}/{trial.life}.{trial.run}"


def note_container_end(connection: Connection, run: runs.Run, rank: int, **how: Any) -> None:
    """Writes how a container ended. With its last one a trial runs no more, and is not shown as if it did.

    Args:
        connection: A transaction.
        run: The container's run, not settled yet.
        rank: The container within it.
        how: Columns of the container.
    """
    runs.update_container(connection, run.allocation_id, rank, **how)
    containers = runs.containers_of(connection, run.allocation_id)
    trial = trials.get(connection, trial_id=run.trial_id)
    over = all(container.exited or container.lost for container in containers)
    if over and trial.run == run.run and trial.state in {TrialState.STARTING, TrialState.RUNNING}:
        trials.update(connection, trial, state=TrialState.STOPPING.value)


def write_decision(
    connection: Connection,
    trial: trials.Trial,
    run: runs.Run,
    *,
    evidence: Evidence,
    decision: Decision,
    now: float,
) -> None:
    """Writes what the end of a run means for it and for its trial; a second time changes nothing."""
    if runs.get(connection, run.allocation_id).ended:
        return
    sealed, findings = evidence.sealed, evidence.findings
    runs.update(
        connection,
        run.allocation_id,
        outcome=decision.outcome.value,
        exit_code=None if evidence.exit.lost else evidence.exit.exit_code,
        failure=evidence.failure,
        ended_at=now,
        acknowledged=evidence.exit.acknowledged,
        log_policies=list(findings.notes),
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
        excluded_nodes=sorted(findings.excluded_nodes.union(trial.excluded_nodes)),
        explanation=_explanation(decision, evidence),
        status="",
        queued_at=now if decision.trial is TrialState.QUEUED else trial.queued_at,
        ended_at=now if ended else None,
    )
    if ended:
        announce_end(connection, trial, decision.search_event)


def _explanation(decision: Decision, evidence: Evidence) -> str:
    if not evidence.failure:
        return ""
    last_line = evidence.failure.strip().splitlines()[-1]
    return "; ".join([f"{decision.outcome.value.lower()}: {last_line}"[:500], *evidence.findings.notes])
