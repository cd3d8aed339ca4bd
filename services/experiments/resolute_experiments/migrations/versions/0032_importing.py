"""Imported experiments that are not complete."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"


_NOT_FINISHED = "its import from another cluster is not complete; start the same import again"


def upgrade() -> None:
    """Adds the column; until now the text of a warning had it."""
    op.add_column(
        "experiments", sa.Column("importing", sa.Boolean, nullable=False, server_default=sa.false())
    )
    experiments = sa.table("experiments", sa.column("importing"), sa.column("warning"))
    op.execute(
        experiments.update()
        .where(experiments.c.warning == _NOT_FINISHED)
        .values(importing=sa.true(), warning="")
    )
