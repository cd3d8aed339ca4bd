"""The tables of the experiments service. UUIDs are keys between services; numbers are for people."""

from __future__ import annotations

import sqlalchemy as sa

from resolute_serving.idempotency import IdempotencyKeys

metadata = sa.MetaData()

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
    sqlite_autoincrement=True,
)
sa.Index("experiments_by_external_id", experiments.c.external_id, unique=True)
sa.Index("experiments_by_state", experiments.c.state)
sa.Index("experiments_by_project", experiments.c.workspace, experiments.c.project)

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
    sqlite_autoincrement=True,
)
sa.Index("trials_by_external_id", trials.c.experiment_id, trials.c.external_id, unique=True)
sa.Index("trials_by_experiment", trials.c.experiment_id, trials.c.number)
sa.Index("trials_in_queue", trials.c.state, trials.c.experiment_id, trials.c.number, trials.c.queued_at)

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
)
sa.Index("runs_by_request", runs.c.request_id, unique=True)
sa.Index("runs_by_outcome", runs.c.outcome)

# Environments of runs, each kept once: a RunEnvironment by the SHA-256 of its bytes.
environments = sa.Table(
    "environments",
    metadata,
    sa.Column("digest", sa.String(64), primary_key=True),
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
    # By its own word where it left one, else when its end was heard of.
    sa.Column("ended_at", sa.Float),
    # It was ended here because another container of its run had failed: its own end tells nothing.
    sa.Column("straggler", sa.Boolean, nullable=False, server_default=sa.false()),
)

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

users = sa.Table(
    "users",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("name", sa.String(128), nullable=False, unique=True),
    sa.Column("role", sa.String(16), nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("active", sa.Boolean, nullable=False, server_default=sa.true()),
    # A salted hash; empty when no password lets the user in.
    sa.Column("password", sa.Text, nullable=False, server_default=""),
    sa.Column("revision", sa.BigInteger, nullable=False, server_default="1"),
    sqlite_autoincrement=True,
)

# What users set for the programs that they see the cluster by.
user_settings = sa.Table(
    "user_settings",
    metadata,
    sa.Column("user_number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

# Whom the OpenID provider knows by which subject. Names can change there; subjects cannot.
openid_identities = sa.Table(
    "openid_identities",
    metadata,
    sa.Column("issuer", sa.String(512), primary_key=True),
    sa.Column("subject", sa.String(255), primary_key=True),
    sa.Column("user_number", sa.Integer, nullable=False),
)

tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("id", sa.String(36), nullable=False, unique=True),
    sa.Column("username", sa.String(128), nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("expires_at", sa.Float, nullable=False),
    sa.Column("revoked", sa.Boolean, nullable=False),
    # How it came to be: a TokenKind.
    sa.Column("kind", sa.String(16), nullable=False, server_default="access"),
    # The token with which it was issued and ends.
    sa.Column("parent_id", sa.String(36)),
    # The service account, whose tokens have no user.
    sa.Column("service", sa.String(32), nullable=False, server_default=""),
    # The allocation with which the token of a run ends.
    sa.Column("allocation_id", sa.String(64)),
    # What it may be used for: a TokenScope.
    sa.Column("scope", sa.String(16), nullable=False, server_default="all"),
    sqlite_autoincrement=True,
)
sa.Index("tokens_by_user", tokens.c.username)
sa.Index("tokens_by_parent", tokens.c.parent_id)
sa.Index("tokens_by_allocation", tokens.c.allocation_id)

workspaces = sa.Table(
    "workspaces",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("name", sa.String(80), nullable=False, unique=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("archived", sa.Boolean, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    # Bounds of what its experiments may use together; zero for none.
    sa.Column("live_experiments", sa.BigInteger, nullable=False),
    sa.Column("slots", sa.BigInteger, nullable=False),
    sa.Column("storage_bytes", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("revision", sa.BigInteger, nullable=False, server_default="1"),
    sqlite_autoincrement=True,
)

# What users may do in single workspaces; what they may do in all of them is in their own rows.
workspace_roles = sa.Table(
    "workspace_roles",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("user_number", sa.Integer, nullable=False),
    sa.Column("workspace_number", sa.Integer, nullable=False),
    sa.Column("role", sa.String(16), nullable=False),
    sa.Column("updated_at", sa.Float, nullable=False),
    sa.UniqueConstraint("user_number", "workspace_number", name="workspace_roles_by_user"),
    sqlite_autoincrement=True,
)
sa.Index("workspace_roles_by_workspace", workspace_roles.c.workspace_number)

projects = sa.Table(
    "projects",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("workspace", sa.String(80), nullable=False),
    sa.Column("name", sa.String(80), nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("notes", sa.Text, nullable=False),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("archived", sa.Boolean, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("revision", sa.BigInteger, nullable=False, server_default="1"),
    sa.UniqueConstraint("workspace", "name", name="projects_by_name"),
    sqlite_autoincrement=True,
)

templates = sa.Table(
    "templates",
    metadata,
    sa.Column("name", sa.String(256), primary_key=True),
    sa.Column("config", sa.JSON, nullable=False),
    sa.Column("updated_at", sa.Float, nullable=False),
)

config_policies = sa.Table(
    "config_policies",
    metadata,
    # Zero for those of the cluster.
    sa.Column("workspace_number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("invariants", sa.JSON, nullable=False),
    sa.Column("max_slots", sa.Integer),
    sa.Column("priority_limit", sa.Integer),
    sa.Column("updated_at", sa.Float, nullable=False),
)

disabled_slots = sa.Table(
    "disabled_slots",
    metadata,
    # A number is unique in its pool.
    sa.Column("resource_pool", sa.String(128), primary_key=True),
    sa.Column("slot_id", sa.BigInteger, primary_key=True, autoincrement=False),
    # Whether the run that holds it goes on to its end.
    sa.Column("draining", sa.Boolean, nullable=False),
    sa.Column("disabled_at", sa.Float, nullable=False),
)

# Why trials wait, as the scheduler decided it last: one reason an experiment, whatever its number of trials.
wait_reasons = sa.Table(
    "wait_reasons",
    metadata,
    sa.Column("experiment_id", sa.String(36), primary_key=True),
    # The trial that was next; empty when the reason is that of all of them.
    sa.Column("trial_id", sa.String(36), nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
)

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("time", sa.Float, nullable=False),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("action", sa.String(64), nullable=False),
    sa.Column("resource", sa.Text, nullable=False),
    sa.Column("detail", sa.JSON, nullable=False),
    # The user who did it, whose name may have changed since.
    sa.Column("user_number", sa.Integer),
    sqlite_autoincrement=True,
)
sa.Index("audit_by_time", audit.c.time, audit.c.position)

IDEMPOTENCY_KEYS = IdempotencyKeys(metadata)
"""Request ids of calls that create something here."""
