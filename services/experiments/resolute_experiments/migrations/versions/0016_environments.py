"""The software and the machines of runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Creates the table of environments; of earlier runs none is known."""
    op.create_table(
        "environments",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.add_column("runs", sa.Column("environment_digest", sa.String(64)))
