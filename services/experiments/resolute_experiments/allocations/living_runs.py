"""Runs that may still change their trials."""

from __future__ import annotations

from sqlalchemy.engine import Connection

from resolute.errors import RunSupersededError
from resolute_experiments.store import runs, trials
from resolute_experiments.store.runs import Run


def living_run(connection: Connection, allocation_id: str) -> Run:
    """Reads the run of an allocation.

    A writer calls this in its own transaction, because the run may end in between.

    Raises:
        NotFoundError: There is none.
        RunSupersededError: It has ended, or another has taken its place.
    """
    run = runs.get(connection, allocation_id)
    trial = trials.get(connection, trial_id=run.trial_id)
    if run.ended or run.run != trial.run:
        raise RunSupersededError(
            f"run {run.run} of {trial.label} is over; its reports are accepted, its other calls are not",
            resource=trial.label,
        )
    return run
