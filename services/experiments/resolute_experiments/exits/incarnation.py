"""Handles runs that were in progress when a new incarnation of the cluster begins."""

from __future__ import annotations

from sqlalchemy.engine import Connection

from resolute_experiments.exits.recording import record_container_exit
from resolute_experiments.store import runs
from resolute_experiments.timing import Timing


def lose_runs(connection: Connection, timing: Timing) -> int:
    """Notes that every run of this cluster that is under way was lost.

    Their processes, if they still run, belong to the original of a restored or copied cluster. Each trial
    continues from its last checkpoint as a new run.

    Args:
        connection: A transaction; no service uses the database.
        timing: Now.

    Returns:
        How many runs were under way.
    """
    lost = 0
    for run in runs.unfinalized(connection):
        lost += 1
        for container in runs.containers_of(connection, run.allocation_id):
            if not container.over:
                record_container_exit(connection, run, container.container_rank, timing, lost=True)
    return lost
