"""Times in the local time zone."""

from __future__ import annotations

from datetime import datetime, timezone


def local_time(moment: datetime) -> str:
    """Writes a time in the zone of this machine.

    What a script reports may be of a year that this zone has no room for: that stays in UTC.
    """
    try:
        here = moment.astimezone()
    except (OverflowError, ValueError):
        return f"{moment.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    return f"{here:%Y-%m-%d %H:%M:%S}"
