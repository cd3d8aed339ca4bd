"""Records the ends of containers and runs, together with the messages to other services."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.engine import Connection

from resolute_experiments.alerts.raising import raise_of_log_policies, raise_of_lost_node
from resolute_experiments.exits.log_policies import LogPolicyResult
from resolute_experiments.exits.policy import Decision, Exit
from resolute_experiments.states import RUNS, ExperimentState, RunOutcome, TrialEvent
from resolute_experiments.store import runs, trials
from resolute_experiments.timing import Timing
from resolute_experiments.transitions import signals, transition_trial

_GOES_ON = {TrialEvent.RUN_RESUMES, TrialEvent.RUN_RETRIED}
"""What happens to a trial whose next run begins where a checkpoint is."""
_LONGEST = 500
"""Characters that are kept of why a run ended."""


@dataclass(frozen=True, kw_only=True)
class SealResult:
    """The answers of the other services when the run was fenced."""

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

    def kept_steps(self, trial: trials.Trial) -> int:
        """Steps that the next run of the trial need not repeat."""
        return self.steps_completed if self.checkpoint_id else trial.steps_completed


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The facts about an ended run."""

    exit: Exit
    """How its processes ended."""
    failure: str
    """Why it failed, for people."""
    sealed: SealResult
    """The answers of the other services."""
    findings: LogPolicyResult = field(default_factory=LogPolicyResult)
    """What log policies make of its lines."""
    reached_steps: int | None = None
    """Last step that the run reported a metric at; None where it is not known."""
    not_repeated: str = ""
    """Why its failure is not repeated, for people; empty if it may be."""

    def steps(self, trial: trials.Trial) -> int | None:
        """Steps that the trial has come to with the run; None where that is not known."""
        return None if self.reached_steps is None else max(self.reached_steps, self.sealed.kept_steps(trial))


def record_container_exit(
    connection: Connection,
    run: runs.Run,
    rank: int,
    timing: Timing,
    *,
    end_time: float = 0.0,
    left_out: Iterable[str] = (),
    **how: Any,
) -> None:
    """Writes how a container ended. With its last one a trial runs no more, and is not shown as if it did.

    Args:
        connection: A transaction.
        run: The container's run, not settled yet.
        rank: The container within it.
        timing: When it was received.
        end_time: Unix time at which it ended by its own word; 0 when it left none.
        left_out: What was left out of its reports, for people.
        how: Columns of the container.
    """
    # The clock of its machine may be ahead, but nothing is received before it happened.
    ended_at = min(end_time or timing.now, timing.now)
    runs.note_left_out(connection, run, left_out)
    runs.update_container(connection, run.allocation_id, rank, ended_at=ended_at, **how)
    containers = runs.containers_of(connection, run.allocation_id)
    trial = trials.get(connection, trial_id=run.trial_id)
    over = all(container.over for container in containers)
    if over and trial.run == run.run and not run.ended:
        transition_trial(connection, trial, TrialEvent.CONTAINERS_ENDED, timing)


def record_run_exit(
    connection: Connection,
    trial: trials.Trial,
    run: runs.Run,
    *,
    evidence: Evidence,
    decision: Decision,
    experiment: ExperimentState,
    timing: Timing,
    hold_seconds: float = 0.0,
) -> None:
    """Writes what the end of a run means for it and for its trial; a second time changes nothing.

    The files of one that failed are held for ``hold_seconds``.
    """
    current = runs.get(connection, run.allocation_id)
    if current.ended:
        return
    outcome = RUNS.step(current.outcome, decision.run, resource=run.label).after
    sealed, findings = evidence.sealed, evidence.findings
    lost_steps = _lost_steps(trial, evidence) if decision.trial in _GOES_ON else None
    signals.free(
        connection,
        current,
        outcome=outcome.value,
        exit_code=None if evidence.exit.lost else evidence.exit.exit_code,
        failure=evidence.failure,
        ended_at=timing.now,
        acknowledged=evidence.exit.acknowledged,
        log_policies=list(findings.notes),
        kept_steps=sealed.kept_steps(trial),
        lost_steps=lost_steps,
        held_until=timing.now + hold_seconds if hold_seconds and outcome is RunOutcome.FAILED else None,
    )
    if outcome is RunOutcome.LOST:
        raise_of_lost_node(connection, trial, _loss(connection, run), now=timing.now)
    if findings.notes:
        raise_of_log_policies(connection, trial, run.run, findings.notes, now=timing.now)
    transition_trial(
        connection,
        trial,
        decision.trial,
        timing,
        paused=experiment is ExperimentState.PAUSED,
        latest_checkpoint_id=sealed.checkpoint_id or trial.latest_checkpoint_id,
        steps_completed=sealed.kept_steps(trial),
        lost_steps=trial.lost_steps + (lost_steps or 0),
        settled_length=sealed.operation_length if sealed.operation_completed else trial.settled_length,
        closed=trial.closed or sealed.operation_closed,
        excluded_nodes=sorted(findings.excluded_nodes.union(trial.excluded_nodes)),
        explanation=_explanation(outcome, evidence),
        status="",
    )


def _loss(connection: Connection, run: runs.Run) -> str:
    """Which containers of a run were lost, with the engine's words."""
    lost = [container for container in runs.containers_of(connection, run.allocation_id) if container.lost]
    where = [
        f"container {container.container_rank}"
        + (f" at {container.address}" if container.address else "")
        + (f" ({container.failure})" if container.failure else "")
        for container in lost
    ]
    return f"Run {run.run} was lost with its machine or its supervisor: {', '.join(where) or 'all of it'}."


def _lost_steps(trial: trials.Trial, evidence: Evidence) -> int | None:
    """Steps that the next run repeats; None where that is not known.

    The steps of a trial that began from the checkpoint of another one may have any first number: what it has
    lost is known from its own first checkpoint on.
    """
    from_another = bool(trial.latest_checkpoint_id) and not trial.steps_completed
    if evidence.reached_steps is None or (from_another and not evidence.sealed.steps_completed):
        return None
    return max(0, evidence.reached_steps - evidence.sealed.kept_steps(trial))


def _explanation(outcome: RunOutcome, evidence: Evidence) -> str:
    if not evidence.failure:
        return ""
    last_line = evidence.failure.strip().splitlines()[-1]
    what = "refused its hyperparameters" if outcome is RunOutcome.INVALID_HP else outcome.value.lower()
    notes = [f"{what}: {last_line}"[:_LONGEST], *evidence.findings.notes, evidence.not_repeated]
    return "; ".join(filter(None, notes))
