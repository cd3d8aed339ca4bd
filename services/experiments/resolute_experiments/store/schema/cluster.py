"""The tables of the cluster as a whole."""

from __future__ import annotations

import sqlalchemy as sa

from resolute_experiments.store.schema.metadata import metadata

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
