"""The git work trees that code was submitted from."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Creates the table; of earlier experiments none is known."""
    op.create_table(
        "experiment_sources",
        sa.Column("experiment_id", sa.String(36), primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
