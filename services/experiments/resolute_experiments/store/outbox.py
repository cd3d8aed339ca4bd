"""The outbox of messages to other services: written with their cause, delivered later by the controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_experiments.store.schema import outbox


class Kind(Enum):
    """The call that delivers a message."""

    TRIAL_CREATED = "trial_created"
    TRIAL_ENDED = "trial_ended"
    LOGS_CLOSED = "logs_closed"


class SearchEvent(Enum):
    """The event that a search receives about a trial that ended permanently."""

    CLOSED = "CLOSED"
    ERRORED = "ERRORED"
    USER_REQUESTED_STOP = "USER_REQUESTED_STOP"
    USER_CANCELED = "USER_CANCELED"
    INVALID_HP = "INVALID_HP"
    INIT_INVALID_HP = "INIT_INVALID_HP"


@dataclass(frozen=True, kw_only=True)
class Message:
    """One row of ``outbox``."""

    position: int
    event_id: str
    experiment_id: str
    kind: Kind
    payload: dict[str, Any]


def put(
    connection: Connection, *, event_id: str, experiment_id: str, kind: Kind, payload: dict[str, Any]
) -> None:
    """Adds a message, unless its identifier is known."""
    known = connection.execute(
        sa.select(outbox.c.position).where(outbox.c.event_id == event_id)
    ).one_or_none()
    if known is None:
        connection.execute(
            sa.insert(outbox).values(
                event_id=event_id, experiment_id=experiment_id, kind=kind.value, payload=payload
            )
        )


def put_all(
    connection: Connection, *, experiment_id: str, kind: Kind, payloads: Mapping[str, dict[str, Any]]
) -> None:
    """Adds messages of one kind, whose identifiers are new.

    Args:
        connection: The caller's transaction.
        experiment_id: The experiment that they are about.
        kind: Which call delivers them.
        payloads: What they say, by their identifiers.
    """
    rows = [
        {"event_id": event_id, "experiment_id": experiment_id, "kind": kind.value, "payload": payload}
        for event_id, payload in payloads.items()
    ]
    if rows:
        connection.execute(sa.insert(outbox), rows)


def pending(connection: Connection, experiment_id: str, *, limit: int = 500) -> list[Message]:
    """Reads an experiment's messages in order."""
    query = sa.select(outbox).where(outbox.c.experiment_id == experiment_id)
    return [
        Message(**{**row._mapping, "kind": Kind(row.kind)})
        for row in connection.execute(query.order_by(outbox.c.position).limit(limit))
    ]


def remove(connection: Connection, positions: Sequence[int]) -> None:
    """Forgets messages that were delivered."""
    connection.execute(sa.delete(outbox).where(outbox.c.position.in_(positions)))
