"""The resource pools of experiments and runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    """Adds the columns; all that there is belongs to the pool of this machine."""
    op.add_column(
        "experiments", sa.Column("resource_pool", sa.String(128), nullable=False, server_default="")
    )
    op.add_column(
        "runs", sa.Column("resource_pool", sa.String(128), nullable=False, server_default="default")
    )
