"""The tables of runs, and the types of their rows."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from resolute_experiments.states import AllocationState, RunOutcome
from resolute_experiments.store.schema.metadata import metadata

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("trial_id", sa.String(36), sa.ForeignKey("trials.id"), primary_key=True),
    sa.Column("run", sa.Integer, primary_key=True),
    sa.Column("allocation_id", sa.String(64), nullable=False, unique=True),
    sa.Column("experiment_id", sa.String(36), nullable=False),
    sa.Column("outcome", sa.String(16), nullable=False),
    sa.Column("exit_code", sa.Integer),
    sa.Column("failure", sa.Text, nullable=False),
    sa.Column("slot_ids", sa.JSON, nullable=False),
    sa.Column("started_at", sa.Float, nullable=False),
    # Since when it holds its slots; NULL while it waits in the queue of its engine, and if it ended there.
    sa.Column("held_from", sa.Float),
    sa.Column("ended_at", sa.Float),
    sa.Column("trace_id", sa.String(32), nullable=False),
    # The signal to checkpoint and exit: level-triggered, its revision only grows.
    sa.Column("signal_revision", sa.BigInteger, nullable=False),
    sa.Column("preempt", sa.Boolean, nullable=False),
    sa.Column("kill", sa.Boolean, nullable=False),
    sa.Column("signal_reason", sa.String(16), nullable=False),
    sa.Column("signal_deadline", sa.Float),
    sa.Column("acknowledged", sa.Boolean, nullable=False),
    # What log policies did because of its lines, for people.
    sa.Column("log_policies", sa.JSON, nullable=False, server_default="[]"),
    # Seconds between its signal and the hard end of its processes; NULL takes the cluster's.
    sa.Column("preemption_timeout", sa.Float),
    # UUID that a run outside of the cluster was given there.
    sa.Column("request_id", sa.String(36)),
    # SHA-256 of the environment that it started in; NULL when none was recorded.
    sa.Column("environment_digest", sa.String(64)),
    # When its script had initialized the Core API, by its own word; NULL when it never did or has not ended.
    sa.Column("initialized_at", sa.Float),
    # What its GPUs did, as its containers reported it when they ended; NULL where nothing was measured.
    sa.Column("gpu_energy_joules", sa.Float),
    sa.Column("gpu_busy_seconds", sa.Float),
    sa.Column("gpu_measured_seconds", sa.Float),
    # The pool that its slots are of.
    sa.Column("resource_pool", sa.String(128), nullable=False, server_default="default"),
    # Steps of the trial's latest checkpoint at its end, and steps beyond it that the next run must repeat;
    # these are NULL when no other follows, and when the metrics service did not answer.
    sa.Column("kept_steps", sa.BigInteger),
    sa.Column("lost_steps", sa.BigInteger),
    # What was left out of its reports, for people: one text for each kind.
    sa.Column("left_out", sa.JSON, nullable=False, server_default="[]"),
    # What kept it from moving on, for people, when it last stood still.
    sa.Column("hang", sa.Text, nullable=False, server_default=""),
    # When that was noticed; NULL while it moves.
    sa.Column("stuck_since", sa.Float),
    # What its guard found and did, for people. Where the trial goes back: the steps of the bad report, and
    # those until which its reports were good.
    sa.Column("guard", sa.Text, nullable=False, server_default=""),
    sa.Column("bad_steps", sa.BigInteger),
    sa.Column("good_steps", sa.BigInteger),
    # How little its GPUs did, for people, when they were last found idle.
    sa.Column("idle", sa.Text, nullable=False, server_default=""),
    # Until then its files are held; NULL if they are not.
    sa.Column("held_until", sa.Float),
    # Where its checkpoints are, if its pool has directories of workspaces; empty for where its config says.
    sa.Column("checkpoint_directory", sa.Text, nullable=False, server_default=""),
)
sa.Index("runs_by_request", runs.c.request_id, unique=True)
sa.Index("runs_by_outcome", runs.c.outcome)
sa.Index("runs_by_directory", runs.c.experiment_id, runs.c.checkpoint_directory)


@dataclass(frozen=True, kw_only=True)
class Run:
    """One row of ``runs``: an attempt to execute a trial, with its allocation."""

    trial_id: str
    run: int
    allocation_id: str
    experiment_id: str
    outcome: RunOutcome
    exit_code: int | None
    failure: str
    slot_ids: tuple[int, ...]
    started_at: float
    ended_at: float | None
    trace_id: str
    signal_revision: int
    preempt: bool
    kill: bool
    signal_reason: str
    signal_deadline: float | None
    acknowledged: bool
    log_policies: tuple[str, ...]
    preemption_timeout: float | None
    request_id: str | None
    environment_digest: str | None = None
    held_from: float | None = None
    initialized_at: float | None = None
    gpu_energy_joules: float | None = None
    gpu_busy_seconds: float | None = None
    gpu_measured_seconds: float | None = None
    resource_pool: str = "default"
    kept_steps: int | None = None
    lost_steps: int | None = None
    left_out: tuple[str, ...] = ()
    hang: str = ""
    stuck_since: float | None = None
    guard: str = ""
    idle: str = ""
    held_until: float | None = None
    bad_steps: int | None = None
    good_steps: int | None = None
    checkpoint_directory: str = ""

    @property
    def ended(self) -> bool:
        """Whether it was settled."""
        return self.outcome is not RunOutcome.UNSPECIFIED

    @property
    def label(self) -> str:
        """How messages name it."""
        return f"run {self.run} ({self.allocation_id})"

    @property
    def allocation(self) -> AllocationState:
        """Where its allocation stands."""
        if self.ended:
            return AllocationState.FREED
        if self.kill:
            return AllocationState.KILLED
        if self.preempt:
            return AllocationState.ACKNOWLEDGED if self.acknowledged else AllocationState.SIGNALED
        return AllocationState.EXITING if self.acknowledged else AllocationState.GRANTED

    def grace(self, usual: float) -> float:
        """Seconds between its signal and the hard end of its processes: its config's, else the usual."""
        return usual if self.preemption_timeout is None else self.preemption_timeout


@dataclass(frozen=True, kw_only=True)
class Container:
    """One row of ``containers``: the part of an allocation on one machine."""

    allocation_id: str
    container_rank: int
    slot_ids: tuple[int, ...]
    node: int
    address: str
    ports: tuple[int, ...]
    pid: int
    exited: bool
    lost: bool
    exit_code: int | None
    acknowledged: bool
    early_exit_reason: str
    failure: str
    ended_at: float | None
    straggler: bool
    hang: str = ""
    idle: str = ""

    @property
    def over(self) -> bool:
        """Whether it ended, seen or unseen."""
        return self.exited or self.lost


# Environments of runs, each kept once: a RunEnvironment by the SHA-256 of its bytes.
environments = sa.Table(
    "environments",
    metadata,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("content", sa.LargeBinary, nullable=False),
)

# What the machine of each container did: a MachineUsage.
machine_usage = sa.Table(
    "machine_usage",
    metadata,
    sa.Column("allocation_id", sa.String(64), primary_key=True),
    sa.Column("container_rank", sa.Integer, primary_key=True),
    sa.Column("experiment_id", sa.String(36), nullable=False, index=True),
    sa.Column("content", sa.LargeBinary, nullable=False),
)

containers = sa.Table(
    "containers",
    metadata,
    sa.Column("allocation_id", sa.String(64), primary_key=True),
    sa.Column("container_rank", sa.Integer, primary_key=True),
    sa.Column("slot_ids", sa.JSON, nullable=False),
    sa.Column("node", sa.Integer, nullable=False, server_default="0"),
    sa.Column("address", sa.Text, nullable=False),
    sa.Column("ports", sa.JSON, nullable=False),
    sa.Column("pid", sa.BigInteger, nullable=False),
    sa.Column("exited", sa.Boolean, nullable=False),
    sa.Column("lost", sa.Boolean, nullable=False),
    sa.Column("exit_code", sa.Integer),
    sa.Column("acknowledged", sa.Boolean, nullable=False),
    sa.Column("early_exit_reason", sa.String(32), nullable=False),
    sa.Column("failure", sa.Text, nullable=False),
    # As it recorded itself if it did, else when its end was received.
    sa.Column("ended_at", sa.Float),
    # It was ended here because another container of its run had failed: its own end tells nothing.
    sa.Column("straggler", sa.Boolean, nullable=False, server_default=sa.false()),
    # What keeps its processes from moving on, for people; empty while they move.
    sa.Column("hang", sa.Text, nullable=False, server_default=""),
    # How little its GPUs do, for people; empty while they do enough.
    sa.Column("idle", sa.Text, nullable=False, server_default=""),
)
