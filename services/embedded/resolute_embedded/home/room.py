"""Checks that the disk of a home has enough space for a start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from resolute.client.connection.home import HOME_VARIABLE
from resolute.errors import QuotaError
from resolute.transfer.disk import is_full_disk

_MESSAGE_OF_SQLITE = "disk is full"


@contextmanager
def full_home_errors(home: Path) -> Iterator[None]:
    """Turns the failure of a full disk into one sentence that names the home and the remedy.

    Raises:
        QuotaError: The disk of the home is full; the databases, or a file, could not be written.
    """
    try:
        yield
    except Exception as error:
        full = is_full_disk(error) if isinstance(error, OSError) else _MESSAGE_OF_SQLITE in str(error)
        if not full:
            raise
        raise QuotaError(full_home(home)) from error


def full_home(home: Path) -> str:
    """Says that there is no room for a start, and what to do."""
    return (
        f"the disk of {home} is full; free some space there, or let {HOME_VARIABLE} name a directory on "
        "another disk, and start the cluster again"
    )
