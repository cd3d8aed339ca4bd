"""Settings of users: named texts, which the services do not interpret."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_experiments.store.schema import user_settings as table


def of_user(connection: Connection, user_number: int) -> dict[str, str]:
    """Reads the settings of a user, by their names."""
    rows = connection.execute(
        sa.select(table.c.name, table.c.value).where(table.c.user_number == user_number)
    )
    return {row.name: row.value for row in rows}


def put(connection: Connection, user_number: int, settings: Mapping[str, str]) -> None:
    """Writes settings in place of those of the same names.

    Args:
        connection: A write transaction.
        user_number: Whose they are.
        settings: New values; an empty one removes the setting.
    """
    if not settings:
        return
    named = sa.and_(table.c.user_number == user_number, table.c.name.in_(settings))
    connection.execute(sa.delete(table).where(named))
    rows = [
        {"user_number": user_number, "name": name, "value": value}
        for name, value in settings.items()
        if value
    ]
    if rows:
        connection.execute(sa.insert(table), rows)
