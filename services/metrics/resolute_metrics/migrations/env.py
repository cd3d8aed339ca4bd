"""Alembic runs this file; the environment is shared by all services."""

from resolute_serving.database.alembic_env import run

run()
