"""Files whose bytes an earlier checkpoint has sent.

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Says of each file where its bytes lie, and finds files by their digests."""
    op.add_column("files", sa.Column("home_id", sa.String(36)))
    op.add_column("files", sa.Column("home_path", sa.Text))
    op.create_index("files_by_digest", "files", ["digest"])
    op.create_index("files_by_home", "files", ["home_id"])


def downgrade() -> None:
    """Drops what was added."""
    op.drop_index("files_by_home", "files")
    op.drop_index("files_by_digest", "files")
    op.drop_column("files", "home_path")
    op.drop_column("files", "home_id")
