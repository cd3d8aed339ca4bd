"""The identity of a run's token, and its scope."""

from __future__ import annotations

import uuid

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.contracts.files.storage_names import storage_name
from resolute_experiments.accounts.store import workspaces
from resolute_experiments.specs.storage import storage
from resolute_experiments.store.runs import Run
from resolute_experiments.store.schema import experiments
from resolute_serving.context import TrialRun


def run_identity(connection: Connection, run: Run) -> TrialRun:
    """Reads what a token of a run says: the run, its workspace, where its checkpoints belong and begin."""
    workspace = workspaces.of_experiment(connection, run.experiment_id)
    # A lease is renewed every few seconds, and a config may be large: only these are read.
    config = experiments.c.config
    sections = sa.select(config["checkpoint_storage"], config["searcher", "source_checkpoint_uuid"])
    kept, source = connection.execute(sections.where(experiments.c.id == run.experiment_id)).one()
    return TrialRun(
        trial_id=run.trial_id,
        run=run.run,
        experiment_id=run.experiment_id,
        allocation_id=run.allocation_id,
        workspace=workspace.name,
        workspace_id=workspace.number,
        storage=run.checkpoint_directory or storage_name(storage({"checkpoint_storage": kept})),
        source_checkpoint_id=str(uuid.UUID(source)) if source else "",
    )
