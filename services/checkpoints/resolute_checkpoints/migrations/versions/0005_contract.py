"""Revisions of objects that can be updated, ids of workspaces and users, and idempotency keys.

Revision ID: 0005
Revises: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from resolute_serving import idempotency

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_IDS = (
    ("checkpoints", "workspace_id"),
    ("models", "workspace_id"),
    ("models", "owner_id"),
    ("model_versions", "owner_id"),
)
_REVISED = ("checkpoints", "models", "model_versions")


def upgrade() -> None:
    """Adds the columns; ids of older rows are known to the experiments service, which assigns them later."""
    for table in _REVISED:
        op.add_column(table, sa.Column("revision", sa.BigInteger, nullable=False, server_default="0"))
    for table, column in _IDS:
        op.add_column(table, sa.Column(column, sa.BigInteger))
    op.create_index("checkpoints_by_workspace", "checkpoints", ["workspace_id"])
    op.drop_index("model_versions_by_request", "model_versions")
    op.drop_column("model_versions", "request_id")
    idempotency.create_table(op)


def downgrade() -> None:
    """Drops what was added."""
    idempotency.drop_table(op)
    op.add_column("model_versions", sa.Column("request_id", sa.String(36)))
    # Any distinct texts do: the keys of calls that were made are gone.
    op.execute("UPDATE model_versions SET request_id = substr(model_id, 1, 24) || '.' || version")
    op.create_index("model_versions_by_request", "model_versions", ["request_id"], unique=True)
    op.drop_index("checkpoints_by_workspace", "checkpoints")
    for table, column in _IDS:
        op.drop_column(table, column)
    for table in _REVISED:
        op.drop_column(table, "revision")
