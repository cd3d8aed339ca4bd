"""Whom the token of a run speaks for, and what belongs to it."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.contracts.files.storage_names import storage_name
from resolute_experiments.accounts.store import workspaces
from resolute_experiments.specs.storage import storage
from resolute_experiments.store.runs import Run
from resolute_experiments.store.schema import experiments
from resolute_serving.context import TrialRun


def run_identity(connection: Connection, run: Run) -> TrialRun:
    """Reads what a token of a run says: the run, its workspace, and where its checkpoints belong."""
    workspace = workspaces.of_experiment(connection, run.experiment_id)
    # A lease is renewed every few seconds, and a config may be large: only the section is read.
    section = sa.select(experiments.c.config["checkpoint_storage"])
    kept = connection.execute(section.where(experiments.c.id == run.experiment_id)).scalar_one()
    return TrialRun(
        trial_id=run.trial_id,
        run=run.run,
        experiment_id=run.experiment_id,
        allocation_id=run.allocation_id,
        workspace=workspace.name,
        workspace_id=workspace.number,
        storage=storage_name(storage({"checkpoint_storage": kept})),
    )
