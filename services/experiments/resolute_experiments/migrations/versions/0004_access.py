"""Users who log in, tokens that can be revoked, workspaces with quotas, projects."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Adds the tables, and the rows that what is there already belongs to."""
    op.add_column("users", sa.Column("active", sa.Boolean, nullable=False, server_default=sa.true()))
    op.add_column("users", sa.Column("password", sa.Text, nullable=False, server_default=""))
    op.create_table(
        "tokens",
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("id", sa.String(36), nullable=False, unique=True),
        sa.Column("username", sa.String(128), nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("expires_at", sa.Float, nullable=False),
        sa.Column("revoked", sa.Boolean, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("tokens_by_user", "tokens", ["username"])
    op.create_table(
        "workspaces",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("name", sa.String(80), nullable=False, unique=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("archived", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("live_experiments", sa.BigInteger, nullable=False),
        sa.Column("slots", sa.BigInteger, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "projects",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("workspace", sa.String(80), nullable=False),
        sa.Column("name", sa.String(80), nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("notes", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("archived", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.UniqueConstraint("workspace", "name", name="projects_by_name"),
        sqlite_autoincrement=True,
    )
    op.create_index("experiments_by_project", "experiments", ["workspace", "project"])
    _adopt()


def _adopt() -> None:
    """Makes the workspaces and projects that experiments name, which was free until now."""
    op.execute(
        "INSERT INTO workspaces (name, owner, archived, created_at, live_experiments, slots)"
        " SELECT workspace, min(owner), false, min(created_at), 0, 0 FROM experiments GROUP BY workspace"
    )
    op.execute(
        "INSERT INTO projects (workspace, name, description, notes, owner, archived, created_at)"
        " SELECT workspace, project, '', '', min(owner), false, min(created_at)"
        " FROM experiments GROUP BY workspace, project"
    )
