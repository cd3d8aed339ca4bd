"""The tables of experiments, and the type of their rows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import sqlalchemy as sa

from resolute_experiments.states import ExperimentState
from resolute_experiments.store.schema.metadata import metadata

experiments = sa.Table(
    "experiments",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("id", sa.String(36), nullable=False, unique=True),
    # Not used any more: request ids have a table of their own. SQLite would rebuild this one to drop it.
    sa.Column("request_id", sa.String(64), nullable=False, unique=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("labels", sa.JSON, nullable=False),
    sa.Column("state", sa.String(32), nullable=False),
    sa.Column("archived", sa.Boolean, nullable=False),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("workspace", sa.Text, nullable=False),
    sa.Column("project", sa.Text, nullable=False),
    sa.Column("config", sa.JSON, nullable=False),
    sa.Column("progress", sa.Float, nullable=False),
    sa.Column("failure", sa.Text, nullable=False),
    sa.Column("revision", sa.BigInteger, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("ended_at", sa.Float),
    sa.Column("definition_sha256", sa.String(64), nullable=False),
    sa.Column("definition_size", sa.BigInteger, nullable=False),
    # Where the controller stands with this experiment's search.
    sa.Column("search_created", sa.Boolean, nullable=False),
    sa.Column("action_cursor", sa.BigInteger, nullable=False),
    # What the scheduler asks at every pass; beside the config, of which they were made.
    sa.Column("slots_per_trial", sa.Integer, nullable=False, server_default="1"),
    sa.Column("single_node", sa.Boolean),
    sa.Column("max_slots", sa.Integer),
    sa.Column("priority", sa.Integer, nullable=False, server_default="42"),
    sa.Column("weight", sa.Float, nullable=False, server_default="1"),
    # Empty for the default pool.
    sa.Column("resource_pool", sa.String(128), nullable=False, server_default=""),
    # Its trials run outside of the cluster, where it may have a name.
    sa.Column("unmanaged", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("external_id", sa.String(256)),
    # It ended before all its reports had arrived: its policy is to be applied once more.
    sa.Column("retention_owed", sa.Boolean, nullable=False, server_default=sa.false()),
    # What is wrong with it although it runs, for people.
    sa.Column("warning", sa.Text, nullable=False, server_default=""),
    sa.Column("notes", sa.Text, nullable=False, server_default=""),
    # Grows with what people change of it, unlike its revision, which grows with its trials too.
    sa.Column("edit_revision", sa.BigInteger, nullable=False, server_default="1"),
    # What it is for: an ExperimentKind.
    sa.Column("kind", sa.String(16), nullable=False, server_default="SEARCH"),
    # Its import from another cluster has begun and is not whole.
    sa.Column("importing", sa.Boolean, nullable=False, server_default=sa.false()),
    # When one of its trials first got slots.
    sa.Column("started_at", sa.Float),
    # When it will be done, as its controller estimates.
    sa.Column("estimated_end_at", sa.Float),
    # How fast its trials are together, as its controller adds up.
    sa.Column("steps_per_second", sa.Float),
    # The metric that its search goes by, empty for none; beside the config, of which it was made.
    sa.Column("metric", sa.Text, nullable=False, server_default=""),
    sa.Column("smaller_is_better", sa.Boolean, nullable=False, server_default=sa.true()),
    # The best validation of all its trials, and the number of the trial that has it.
    sa.Column("best_value", sa.Float),
    sa.Column("best_steps", sa.BigInteger),
    sa.Column("best_trial", sa.BigInteger),
    # It is CANCELED because it was killed, not cancelled.
    sa.Column("killed", sa.Boolean, nullable=False, server_default=sa.false()),
    sqlite_autoincrement=True,
)
sa.Index("experiments_by_external_id", experiments.c.external_id, unique=True)
sa.Index("experiments_by_state", experiments.c.state)
sa.Index("experiments_by_project", experiments.c.workspace, experiments.c.project)


class ExperimentKind(Enum):
    """The kind of an experiment."""

    SEARCH = "SEARCH"
    """Training: its search decides which trials there are."""
    COMMAND = "COMMAND"
    """One command, as one trial."""
    TENSORBOARD = "TENSORBOARD"
    """TensorBoard, as one trial."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One row of ``experiments``."""

    number: int
    id: str
    request_id: str
    name: str
    description: str
    labels: tuple[str, ...]
    state: ExperimentState
    archived: bool
    owner: str
    workspace: str
    project: str
    config: dict[str, Any]
    progress: float
    failure: str
    revision: int
    created_at: float
    ended_at: float | None
    definition_sha256: str
    definition_size: int
    search_created: bool
    action_cursor: int
    slots_per_trial: int
    single_node: bool | None
    max_slots: int | None
    priority: int
    weight: float
    unmanaged: bool
    external_id: str | None
    retention_owed: bool
    warning: str
    edit_revision: int
    resource_pool: str
    """Empty for the default pool."""
    kind: ExperimentKind
    importing: bool
    """Whether its import from another cluster has begun and is not whole."""
    owner_id: int | None
    """None when the owner is no user of this cluster."""
    workspace_id: int
    project_id: int
    started_at: float | None = None
    """When one of its trials first got slots."""
    estimated_end_at: float | None = None
    steps_per_second: float | None = None
    """Of all its trials that run, together; None before that is known."""
    best_value: float | None = None
    """The best validation of all its trials; None before the first finite one."""
    best_steps: int | None = None
    best_trial: int | None = None
    """Number of the trial that has it."""
    killed: bool = False
    """Whether it is CANCELED because it was killed."""

    @property
    def label(self) -> str:
        """How messages name it."""
        return f"experiment {self.number}"


definition_chunks = sa.Table(
    "definition_chunks",
    metadata,
    sa.Column("experiment_id", sa.String(36), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

# The git work trees that code was submitted from: a CodeSource each.
experiment_sources = sa.Table(
    "experiment_sources",
    metadata,
    sa.Column("experiment_id", sa.String(36), primary_key=True),
    sa.Column("content", sa.LargeBinary, nullable=False),
)

continuations = sa.Table(
    "continuations",
    metadata,
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("request_id", sa.String(64), nullable=False, unique=True),
    sa.Column("experiment_id", sa.String(36), sa.ForeignKey("experiments.id"), nullable=False),
    # Where it goes back to, should its search refuse to continue.
    sa.Column("previous_state", sa.String(32), nullable=False),
    sa.Column("previous_config", sa.JSON, nullable=False),
    # What the search is given, and which trials are tried again.
    sa.Column("max_trials", sa.BigInteger),
    sa.Column("max_length", sa.BigInteger),
    sa.Column("trial_ids", sa.JSON, nullable=False),
    sa.Column("carried_out", sa.Boolean, nullable=False),
    sqlite_autoincrement=True,
)
sa.Index("continuations_by_experiment", continuations.c.experiment_id)

outbox = sa.Table(
    "outbox",
    metadata,
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("event_id", sa.String(128), nullable=False, unique=True),
    sa.Column("experiment_id", sa.String(36), nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("payload", sa.JSON, nullable=False),
    sqlite_autoincrement=True,
)
sa.Index("outbox_by_experiment", outbox.c.experiment_id, outbox.c.position)
