"""The changes of the states of trials, with their cause, time and reason, written in the same transaction."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_experiments.store.schema import trial_transitions, trials
from resolute_serving.pagination import Ordering

CREATE = "CREATE"
"""What happens to a trial first; every other event is one of the table of trials."""
_DETAIL_LENGTH = 2000
_ORDERING = Ordering(
    {"position": trial_transitions.c.position},
    unique=trial_transitions.c.position,
    default="position",
    row_bytes=sa.func.length(trial_transitions.c.detail) * 4 + 300,
)


@dataclass(frozen=True, kw_only=True)
class TrialTransition:
    """One row of ``trial_transitions``."""

    trial_id: str
    time: float
    event: str
    from_state: str = ""
    """Empty for the creation."""
    to_state: str
    run: int = 0
    signal_reason: str = ""
    """Empty when its run was not asked to exit."""
    actor: str = ""
    """The user who asked for it; empty when no user did."""
    detail: str = ""
    """For people; cut after 2000 characters."""
    search_event: int | None = None
    """Position in the log of its search of the event that caused it."""


_FIELDS = tuple(field.name for field in fields(TrialTransition))


def record(connection: Connection, *transitions: TrialTransition) -> None:
    """Writes transitions, in the transaction that carries them out."""
    rows = [
        {name: getattr(transition, name) for name in _FIELDS} | {"detail": transition.detail[:_DETAIL_LENGTH]}
        for transition in transitions
    ]
    connection.execute(sa.insert(trial_transitions), rows)


def page(connection: Connection, request: Any, trial_id: str) -> tuple[list[TrialTransition], str]:
    """Reads a page of a trial's transitions, and the token of the next page."""
    page_rows = _ORDERING.page(
        connection, request, sa.select(trial_transitions).where(trial_transitions.c.trial_id == trial_id)
    )
    rows = [TrialTransition(**{name: row[name] for name in _FIELDS}) for row in page_rows.rows]
    return rows, page_rows.next_page_token


def delete(connection: Connection, experiment_id: str) -> None:
    """Removes the transitions of all trials of an experiment."""
    of_experiment = sa.select(trials.c.id).where(trials.c.experiment_id == experiment_id)
    connection.execute(sa.delete(trial_transitions).where(trial_transitions.c.trial_id.in_(of_experiment)))
