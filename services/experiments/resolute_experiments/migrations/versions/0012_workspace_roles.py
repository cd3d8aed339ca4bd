"""Roles of users in single workspaces. Their roles in all workspaces are unchanged."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Begins without any: every user keeps its role in the cluster, which counts in every workspace."""
    op.create_table(
        "workspace_roles",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("user_number", sa.Integer, nullable=False),
        sa.Column("workspace_number", sa.Integer, nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("updated_at", sa.Float, nullable=False),
        sa.UniqueConstraint("user_number", "workspace_number", name="workspace_roles_by_user"),
        sqlite_autoincrement=True,
    )
    op.create_index("workspace_roles_by_workspace", "workspace_roles", ["workspace_number"])
