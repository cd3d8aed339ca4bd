"""The permitted uses of tokens."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Lets the tokens that exist be used for everything, as before."""
    op.add_column("tokens", sa.Column("scope", sa.String(16), nullable=False, server_default="all"))
