"""Every contract suite may ask for ``database_url``: an empty database on each backend."""

from __future__ import annotations

from support.databases.postgres import database_url, postgres_server

__all__ = ["database_url", "postgres_server"]
