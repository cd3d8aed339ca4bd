"""The origin of tokens, and the tokens with which they end; tokens of services and of runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Lets tokens of earlier releases stand alone, as those of sign-ins do."""
    op.add_column("tokens", sa.Column("kind", sa.String(16), nullable=False, server_default="access"))
    op.add_column("tokens", sa.Column("parent_id", sa.String(36)))
    op.add_column("tokens", sa.Column("service", sa.String(32), nullable=False, server_default=""))
    op.add_column("tokens", sa.Column("allocation_id", sa.String(64)))
    op.execute("UPDATE tokens SET kind = 'sign_in' WHERE description = 'login'")
    op.create_index("tokens_by_parent", "tokens", ["parent_id"])
    op.create_index("tokens_by_allocation", "tokens", ["allocation_id"])
