"""Hangs of runs, which supervisors report with each renewal of a lease."""

from __future__ import annotations

from sqlalchemy.engine import Connection

from resolute_experiments.alerts.raising import raise_of_hang
from resolute_experiments.allocations.living_runs import living_run
from resolute_experiments.states import ExperimentEvent, ExperimentState
from resolute_experiments.store import experiments, runs, trials
from resolute_experiments.timing import Timing
from resolute_experiments.transitions import transition_experiment

_LONGEST = 2000
_BEGINS = "it does not move: "


def shortened(sentence: str) -> str:
    """A sentence of a supervisor as it is kept."""
    return sentence[:_LONGEST].replace("\0", "\ufffd")


def note_hang(
    connection: Connection, allocation_id: str, rank: int, sentence: str, *, timing: Timing
) -> None:
    """Records why a container of a run hangs, alerts people, and applies the policy of the config.

    Args:
        connection: A transaction.
        allocation_id: Allocation of the run.
        rank: Rank of the container.
        sentence: Why it hangs; empty once it progresses again.
        timing: When.

    Raises:
        RunSupersededError: The run has ended; the sentence does not apply to the next one.
    """
    run = living_run(connection, allocation_id)
    before = [container for container in runs.containers_of(connection, allocation_id) if container.hang]
    runs.update_container(connection, allocation_id, rank, hang=sentence)
    containers = runs.containers_of(connection, allocation_id)
    sentences = [
        container.hang if len(containers) == 1 else f"container {container.container_rank}: {container.hang}"
        for container in containers
        if container.hang
    ]
    trial = trials.get(connection, trial_id=run.trial_id)
    if not sentences:
        runs.update(connection, allocation_id, stuck_since=None)
        if trial.explanation.startswith(_BEGINS):
            trials.update(connection, trial, explanation="")
        return
    text = "; ".join(sentences)[:_LONGEST]
    # What kept a run stays with it after it has moved again.
    runs.update(connection, allocation_id, hang=text, stuck_since=run.stuck_since or timing.now)
    trials.update(connection, trial, explanation=f"{_BEGINS}{text}")
    if before:
        return
    experiment = experiments.get(connection, experiment_id=run.experiment_id)
    raise_of_hang(connection, trial, text, now=timing.now)
    on_hang = (experiment.config.get("hang") or {}).get("on_hang")
    if on_hang == "pause" and experiment.state is ExperimentState.ACTIVE:
        transition_experiment(connection, experiment, ExperimentEvent.PAUSE, timing)
