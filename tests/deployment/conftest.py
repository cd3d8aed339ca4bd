"""The server of PostgreSQL that the services of a deployment share."""

from support.databases.postgres import postgres_server

__all__ = ["postgres_server"]
