"""Users by number, revisions of what can be updated, users in the audit trail, and request ids."""

from __future__ import annotations

import time

import sqlalchemy as sa
from alembic import op

from resolute_serving import idempotency

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Numbers the users, the admin first, and gives every object its first revision."""
    _number_users()
    for table in ("workspaces", "projects"):
        op.add_column(table, sa.Column("revision", sa.BigInteger, nullable=False, server_default="1"))
    op.add_column("audit", sa.Column("user_number", sa.Integer))
    op.execute(
        "UPDATE audit SET user_number = (SELECT users.number FROM users WHERE users.name = audit.actor)"
    )
    op.create_index("audit_by_time", "audit", ["time", "position"])
    idempotency.create_table(op)


def _number_users() -> None:
    op.rename_table("users", "users_before")
    users = op.create_table(
        "users",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("name", sa.String(128), nullable=False, unique=True),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("active", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("password", sa.Text, nullable=False, server_default=""),
        sa.Column("revision", sa.BigInteger, nullable=False, server_default="1"),
        sqlite_autoincrement=True,
    )
    connection = op.get_bind()
    known = connection.execute(sa.text("SELECT count(*) FROM users_before WHERE name = 'admin'")).scalar_one()
    if not known:
        # The operator's token names user 1 without asking.
        connection.execute(users.insert().values(name="admin", role="admin", created_at=time.time()))
    op.execute(
        "INSERT INTO users (name, role, created_at, active, password)"
        " SELECT name, role, created_at, active, password FROM users_before"
        " ORDER BY CASE WHEN name = 'admin' THEN 0 ELSE 1 END, created_at, name"
    )
    op.drop_table("users_before")
