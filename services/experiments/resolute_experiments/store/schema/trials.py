"""The tables of trials, and the type of their rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from resolute_experiments.states import ENDED_TRIALS, TrialState
from resolute_experiments.store.schema.metadata import metadata

trials = sa.Table(
    "trials",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("id", sa.String(36), nullable=False, unique=True),
    sa.Column("experiment_id", sa.String(36), sa.ForeignKey("experiments.id"), nullable=False),
    sa.Column("request_id", sa.String(36), nullable=False),
    sa.Column("state", sa.String(32), nullable=False),
    sa.Column("hparams", sa.JSON, nullable=False),
    sa.Column("seed", sa.BigInteger, nullable=False),
    sa.Column("restarts", sa.Integer, nullable=False),
    sa.Column("run", sa.Integer, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("metadata", sa.JSON, nullable=False),
    sa.Column("explanation", sa.Text, nullable=False),
    sa.Column("source_checkpoint_id", sa.String(36), nullable=False),
    sa.Column("latest_checkpoint_id", sa.String(36), nullable=False),
    sa.Column("steps_completed", sa.BigInteger, nullable=False),
    # Length of the operation that was complete when the last run was settled: "run again" up to it is stale.
    sa.Column("settled_length", sa.BigInteger, nullable=False),
    sa.Column("closed", sa.Boolean, nullable=False),
    sa.Column("kill_requested", sa.Boolean, nullable=False),
    # Nodes that log policies keep it from.
    sa.Column("excluded_nodes", sa.JSON, nullable=False, server_default="[]"),
    sa.Column("queued_at", sa.Float, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("ended_at", sa.Float),
    sa.Column("revision", sa.BigInteger, nullable=False),
    # How often it continued after its end: tells the ends of its lives apart.
    sa.Column("life", sa.Integer, nullable=False, server_default="0"),
    sa.Column("external_id", sa.String(256)),
    # A copy of what the metrics service knows: its best validation and its last. A last value that is not
    # finite is NULL and has steps.
    sa.Column("best_value", sa.Float),
    sa.Column("best_steps", sa.BigInteger),
    sa.Column("last_value", sa.Float),
    sa.Column("last_steps", sa.BigInteger),
    # Steps that its runs left to the next ones to repeat, as far as they are known.
    sa.Column("lost_steps", sa.BigInteger, nullable=False, server_default="0"),
    # A copy of what the metrics service knows: its last report of training or validation, and its rate.
    sa.Column("reported_run", sa.Integer),
    sa.Column("reported_steps", sa.BigInteger),
    sa.Column("reported_at", sa.Float),
    sa.Column("steps_per_second", sa.Float),
    # Whether that copy is to be looked at: from the start of a run until the first look after its
    # end; once more at the end of its experiment, and when reports have arrived after that.
    sa.Column("steps_due", sa.Boolean, nullable=False, server_default=sa.false()),
    # Up to here its guard has judged the reports of its run; NULL without a guard.
    sa.Column("guarded_steps", sa.BigInteger),
    # What people write of it, and how often they changed it.
    sa.Column("labels", sa.JSON, nullable=False, server_default="[]"),
    sa.Column("notes", sa.Text, nullable=False, server_default=""),
    sa.Column("edit_revision", sa.BigInteger, nullable=False, server_default="1"),
    sqlite_autoincrement=True,
)
sa.Index("trials_by_steps_due", trials.c.steps_due, trials.c.number)
sa.Index("trials_by_best", trials.c.experiment_id, trials.c.best_value, trials.c.number)
sa.Index("trials_by_external_id", trials.c.experiment_id, trials.c.external_id, unique=True)
sa.Index("trials_by_experiment", trials.c.experiment_id, trials.c.number)
sa.Index("trials_in_queue", trials.c.state, trials.c.experiment_id, trials.c.number, trials.c.queued_at)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One row of ``trials``."""

    number: int
    id: str
    experiment_id: str
    request_id: str
    state: TrialState
    hparams: dict[str, Any]
    seed: int
    restarts: int
    run: int
    status: str
    metadata: dict[str, Any]
    explanation: str
    source_checkpoint_id: str
    latest_checkpoint_id: str
    steps_completed: int
    settled_length: int
    closed: bool
    kill_requested: bool
    excluded_nodes: tuple[int, ...]
    queued_at: float
    created_at: float
    ended_at: float | None
    revision: int
    life: int
    external_id: str | None
    best_value: float | None
    """Its best validation; None before the first finite value."""
    best_steps: int | None
    last_value: float | None
    """Its last validation; None when it was not finite."""
    last_steps: int | None
    """None before the first."""
    reported_run: int | None = None
    """The newest run that has reported training or validation."""
    reported_steps: int | None = None
    reported_at: float | None = None
    steps_per_second: float | None = None
    """None before its second report."""
    lost_steps: int = 0
    """Steps that its runs left to the next ones to repeat, as far as they are known."""
    guarded_steps: int | None = None
    """Up to here its guard has judged the reports of its run; None without a guard."""
    labels: tuple[str, ...] = ()
    edit_revision: int = 1

    @property
    def label(self) -> str:
        """How messages name it."""
        return f"trial {self.number}"

    @property
    def ended(self) -> bool:
        """Whether it will never run again by itself."""
        return self.state in ENDED_TRIALS


trial_transitions = sa.Table(
    "trial_transitions",
    metadata,
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("trial_id", sa.String(36), sa.ForeignKey("trials.id"), nullable=False),
    sa.Column("time", sa.Float, nullable=False),
    # The name of a TrialEvent, or CREATE, which has no state before it.
    sa.Column("event", sa.String(32), nullable=False),
    sa.Column("from_state", sa.String(32), nullable=False),
    sa.Column("to_state", sa.String(32), nullable=False),
    sa.Column("run", sa.Integer, nullable=False),
    # Empty for a transition that raises no signal.
    sa.Column("signal_reason", sa.String(16), nullable=False),
    # The user who asked for it; empty when no user did.
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    # The event in the log of the search that caused it.
    sa.Column("search_event", sa.BigInteger),
    sqlite_autoincrement=True,
)
sa.Index("trial_transitions_by_trial", trial_transitions.c.trial_id, trial_transitions.c.position)

validation_cursor = sa.Table(
    "validation_cursor",
    metadata,
    # One row: the revision up to which that copy has been made.
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("revision", sa.BigInteger, nullable=False),
)
