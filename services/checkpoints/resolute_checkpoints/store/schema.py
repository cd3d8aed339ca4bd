"""Tables of the checkpoint registry. Times are seconds since 1970; documents are JSON in text."""

from __future__ import annotations

import sqlalchemy as sa

from resolute_serving.idempotency import IdempotencyKeys
from resolute_serving.ingestion.tables import KEY, IngestionTables

METADATA = sa.MetaData()
KEYS = IdempotencyKeys(METADATA)
"""Request ids of calls that created models and versions."""

experiments = sa.Table(
    "experiments",
    METADATA,
    sa.Column("experiment_id", sa.String(36), primary_key=True),
    # Set for good when the experiment is deleted: nothing can be stored for it any more.
    sa.Column("delete_time", sa.Double),
)

trials = sa.Table(
    "trials",
    METADATA,
    sa.Column("trial_id", sa.String(36), primary_key=True),
    # Runs below it are superseded. Never falls.
    sa.Column("min_run", sa.Integer, nullable=False),
)

checkpoints = sa.Table(
    "checkpoints",
    METADATA,
    sa.Column("checkpoint_id", sa.String(36), primary_key=True),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("trial_id", sa.String(36), nullable=False),
    sa.Column("experiment_id", sa.String(36), nullable=False),
    sa.Column("run", sa.Integer, nullable=False),
    # Its name when the checkpoint was begun; rows from before 0.1.0 have no id until AssignIds.
    sa.Column("workspace", sa.Text, nullable=False),
    sa.Column("workspace_id", sa.BigInteger),
    sa.Column("storage", sa.Text, nullable=False),
    sa.Column("metadata", sa.Text, nullable=False),
    sa.Column("manifest_digest", sa.String(64), nullable=False),
    # About what the files take in a response, so that a page of a list is bounded before it is read.
    sa.Column("manifest_bytes", sa.BigInteger, nullable=False),
    sa.Column("steps_completed", sa.BigInteger, nullable=False),
    sa.Column("total_size", sa.BigInteger, nullable=False),
    sa.Column("create_time", sa.Double, nullable=False),
    sa.Column("commit_time", sa.Double),
    # The order of lists: when it was begun, then when it was committed.
    sa.Column("list_time", sa.Double, nullable=False),
    # When files that are no longer wanted are next to be removed; null when there are none.
    sa.Column("removal_time", sa.Double),
    # Failed removals since the last success; spaces the attempts.
    sa.Column("removal_attempts", sa.Integer, nullable=False),
    # Grows with each claim of the removal, so that only the last claim completes it.
    sa.Column("removal_claim", sa.Integer, nullable=False),
    # Nothing deletes it until it is unpinned.
    sa.Column("pinned", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("file_count", sa.BigInteger, nullable=False, server_default="0"),
    # Written before the cluster was restored or copied: nothing removes its files until they are taken over.
    sa.Column("inherited", sa.Boolean, nullable=False, server_default=sa.false()),
    # Grows with each update; etags are made of it.
    sa.Column("revision", sa.BigInteger, nullable=False, server_default="0"),
    # Committed since retention last looked at its trial.
    sa.Column("unranked", sa.Boolean, nullable=False, server_default=sa.false()),
    # Retention has looked at it; until then it is unknown whether it is one of the best.
    sa.Column("ranked", sa.Boolean, nullable=False, server_default=sa.false()),
    # The searcher's metric at its steps, and when that was reported; as of the last look.
    sa.Column("metric", sa.Double),
    sa.Column("metric_time", sa.Double),
    # Why it was kept at the last look, joined by commas.
    sa.Column("keep_reasons", sa.Text, nullable=False, server_default=""),
    # Somebody reads it until then.
    sa.Column("held_until", sa.Double, nullable=False, server_default="0"),
    # Its trial went back behind it: no run continues from it.
    sa.Column("left_behind", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Index("checkpoints_by_workspace", "workspace_id"),
    sa.Index("checkpoints_by_trial", "trial_id", "list_time", "checkpoint_id"),
    sa.Index("checkpoints_by_experiment", "experiment_id", "list_time", "checkpoint_id"),
    sa.Index("checkpoints_by_state", "state", "create_time"),
    sa.Index("checkpoints_by_removal", "removal_time"),
    sa.Index("checkpoints_by_unranked", "unranked"),
)

files = sa.Table(
    "files",
    METADATA,
    sa.Column("checkpoint_id", sa.String(36), primary_key=True),
    # Paths may be longer than an index takes, so the place in the manifest is the key.
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    # No longer part of the checkpoint; the row goes once the file is gone.
    sa.Column("doomed", sa.Boolean, nullable=False),
    # The checkpoint under whose name the bytes lie, and their path there; null for its own.
    sa.Column("home_id", sa.String(36)),
    sa.Column("home_path", sa.Text),
    sa.Index("files_by_digest", "digest"),
    sa.Index("files_by_home", "home_id"),
)

# Multipart uploads whose URLs were given out, until they are put together or their parts are removed.
uploads = sa.Table(
    "uploads",
    METADATA,
    sa.Column("entry", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    sa.Column("checkpoint_id", sa.String(36), nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("upload_id", sa.Text, nullable=False),
    sa.Index("uploads_by_checkpoint", "checkpoint_id"),
)

models = sa.Table(
    "models",
    METADATA,
    sa.Column("model_id", sa.String(36), primary_key=True),
    sa.Column("number", sa.BigInteger, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("notes", sa.Text, nullable=False),
    sa.Column("labels", sa.Text, nullable=False),
    sa.Column("metadata", sa.Text, nullable=False),
    # Its name, for rows from before 0.1.0 alone: they have no id until AssignIds.
    sa.Column("workspace", sa.Text, nullable=False),
    sa.Column("workspace_id", sa.BigInteger),
    # The name of the user, and the id; NULL where a service created the model, and before AssignIds.
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("owner_id", sa.BigInteger),
    sa.Column("archived", sa.Boolean, nullable=False),
    # Numbers of versions are not given twice, also after some were removed.
    sa.Column("next_version", sa.Integer, nullable=False),
    sa.Column("create_time", sa.Double, nullable=False),
    sa.Column("update_time", sa.Double, nullable=False),
    sa.Column("revision", sa.BigInteger, nullable=False, server_default="0"),
    sa.Index("models_by_name", "name", unique=True),
    sa.Index("models_by_number", "number", unique=True),
)

model_versions = sa.Table(
    "model_versions",
    METADATA,
    sa.Column("model_id", sa.String(36), primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("checkpoint_id", sa.String(36), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("comment", sa.Text, nullable=False),
    sa.Column("notes", sa.Text, nullable=False),
    sa.Column("labels", sa.Text, nullable=False),
    sa.Column("metadata", sa.Text, nullable=False),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("owner_id", sa.BigInteger),
    sa.Column("create_time", sa.Double, nullable=False),
    sa.Column("revision", sa.BigInteger, nullable=False, server_default="0"),
    sa.Index("model_versions_by_checkpoint", "checkpoint_id"),
)

MEDIA_INTAKE = IngestionTables(METADATA, prefix="media_")
"""The experiments, trials and sources of media."""

# The storages that contents of an experiment's media are in.
media_places = sa.Table(
    "media_places",
    METADATA,
    sa.Column("place_key", KEY, primary_key=True),
    sa.Column("experiment_key", KEY, nullable=False),
    sa.Column("storage", sa.Text, nullable=False),
    # Written before the cluster was restored or copied, as of checkpoints.
    sa.Column("inherited", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Index("media_places_by_experiment", "experiment_key"),
)

media = sa.Table(
    "media",
    METADATA,
    sa.Column("media_id", KEY, primary_key=True),
    sa.Column("experiment_key", KEY, nullable=False),
    sa.Column("trial_key", KEY, nullable=False),
    sa.Column("run", sa.Integer, nullable=False),
    sa.Column("name", sa.String(500), nullable=False),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("steps", sa.BigInteger, nullable=False),
    sa.Column("time", sa.Double, nullable=False),
    sa.Column("caption", sa.Text, nullable=False),
    sa.Column("content_type", sa.String(40), nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    # Of small objects; the others lie in a storage, under their digest.
    sa.Column("content", sa.LargeBinary),
    sa.Column("place_key", KEY),
    sa.Index("media_by_steps", "trial_key", "steps", "media_id"),
    sa.Index("media_by_name", "trial_key", "name", "kind", "steps", "media_id"),
    sa.Index("media_by_digest", "experiment_key", "digest"),
    # An id that was deleted must not come again: browsers keep what they have loaded.
    sqlite_autoincrement=True,
)

audit = sa.Table(
    "audit",
    METADATA,
    sa.Column("entry", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    sa.Column("time", sa.Double, nullable=False),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("action", sa.String(40), nullable=False),
    sa.Column("object", sa.String(36), nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Index("audit_by_object", "object"),
)
