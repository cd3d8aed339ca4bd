"""The Alembic environment that all services share: their ``migrations/env.py`` calls ``run``."""

from __future__ import annotations

from alembic import context


def run() -> None:
    """Applies migrations on the connection that ``database.migrations`` put into the config."""
    connection = context.config.attributes["connection"]
    context.configure(connection=connection, transaction_per_migration=False, render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()
