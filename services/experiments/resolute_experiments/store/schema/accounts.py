"""The tables of accounts: users, their tokens, workspaces, and the audit trail."""

from __future__ import annotations

import sqlalchemy as sa

from resolute_experiments.store.schema.metadata import metadata

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

# Secrets for scripts: of a user or of a workspace, of which the other number is zero.
secrets = sa.Table(
    "secrets",
    metadata,
    sa.Column("user_number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("workspace_number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", sa.String(64), primary_key=True),
    # Encrypted with a key outside of the database.
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("updated_at", sa.Float, nullable=False),
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

# Views and reports that a project's people share; what a board shows is in its versions.
boards = sa.Table(
    "boards",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("project_number", sa.Integer, nullable=False),
    sa.Column("name", sa.String(80), nullable=False),
    # The latest.
    sa.Column("version", sa.Integer, nullable=False),
    sa.UniqueConstraint("project_number", "name", name="boards_by_name"),
    sqlite_autoincrement=True,
)

board_versions = sa.Table(
    "board_versions",
    metadata,
    sa.Column("board_number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", sa.String(80), nullable=False),
    # One of both is there.
    sa.Column("path", sa.Text),
    sa.Column("report", sa.Text),
    sa.Column("author", sa.Text, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
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
