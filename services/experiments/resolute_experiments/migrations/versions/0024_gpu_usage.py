"""The usage of the GPUs of runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    """Adds the columns; of earlier runs nothing was measured."""
    for name in ("gpu_energy_joules", "gpu_busy_seconds", "gpu_measured_seconds"):
        op.add_column("runs", sa.Column(name, sa.Float))
