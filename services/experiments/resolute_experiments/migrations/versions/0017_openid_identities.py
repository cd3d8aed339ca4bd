"""Users of an OpenID provider."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Creates the table of the provider's subjects."""
    op.create_table(
        "openid_identities",
        sa.Column("issuer", sa.String(512), primary_key=True),
        sa.Column("subject", sa.String(255), primary_key=True),
        sa.Column("user_number", sa.Integer, nullable=False),
    )
