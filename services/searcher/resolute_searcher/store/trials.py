"""The rows of trials."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import (
    NotFoundError,
)
from resolute_searcher.store.schema import trials


def find_trial(connection: Connection, trial: str) -> tuple[str, str]:
    """Returns the search of a trial, and the trial's identifier within it.

    Raises:
        NotFoundError: No search asked for the trial.
    """
    row = connection.execute(
        sa.select(trials.c.search_id, trials.c.trial_key).where(trials.c.trial_id == trial)
    ).one_or_none()
    if row is None:
        raise NotFoundError(
            f"no search has trial {trial}; it may have been deleted", resource=f"trial {trial}"
        )
    return row.search_id, row.trial_key


def write_progress(connection: Connection, trial: str, progress: float) -> None:
    """Stores the reported progress of a trial."""
    connection.execute(sa.update(trials).where(trials.c.trial_id == trial).values(progress=progress))
