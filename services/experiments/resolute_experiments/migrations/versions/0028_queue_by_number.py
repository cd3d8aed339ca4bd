"""The trials of an experiment are served in the order of their creation."""

from __future__ import annotations

from alembic import op

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    """Orders the index of the queue as it is read now."""
    op.drop_index("trials_in_queue", table_name="trials")
    op.create_index("trials_in_queue", "trials", ["state", "experiment_id", "number", "queued_at"])
