"""Runs with idle GPUs, which supervisors report with each renewal of a lease."""

from __future__ import annotations

from sqlalchemy.engine import Connection

from resolute_experiments.alerts.raising import raise_of_idle
from resolute_experiments.allocations.living_runs import living_run
from resolute_experiments.states import ExperimentEvent, ExperimentState
from resolute_experiments.store import experiments, runs, trials
from resolute_experiments.timing import Timing
from resolute_experiments.transitions import transition_experiment

_BEGINS = "idle: "
_EVENTS = {"pause": ExperimentEvent.PAUSE, "end": ExperimentEvent.CANCEL}


def note_idle(
    connection: Connection, allocation_id: str, rank: int, sentence: str, *, timing: Timing
) -> None:
    """Records that the GPUs of a container are idle. Once all containers are idle, applies the policy.

    Args:
        connection: A transaction.
        allocation_id: Allocation of the run.
        rank: Rank of the container.
        sentence: How little the GPUs are used; empty once they are used enough.
        timing: When.

    Raises:
        RunSupersededError: The run has ended; the sentence does not apply to the next one.
    """
    run = living_run(connection, allocation_id)
    runs.update_container(connection, allocation_id, rank, idle=sentence)
    containers = runs.containers_of(connection, allocation_id)
    trial = trials.get(connection, trial_id=run.trial_id)
    if not all(container.idle for container in containers):
        if trial.explanation.startswith(_BEGINS):
            trials.update(connection, trial, explanation="")
        return
    text = containers[0].idle
    if len(containers) > 1:
        text = "; ".join(
            f"container {idle_container.container_rank}: {idle_container.idle}"
            for idle_container in containers
        )
    runs.update(connection, allocation_id, idle=text)
    trials.update(connection, trial, explanation=f"{_BEGINS}{text}")
    raise_of_idle(connection, trial, text, now=timing.now)
    experiment = experiments.get(connection, experiment_id=run.experiment_id)
    event = _EVENTS.get((experiment.config.get("utilization_policy") or {}).get("then", ""))
    if event is not None and experiment.state is ExperimentState.ACTIVE:
        transition_experiment(connection, experiment, event, timing)
