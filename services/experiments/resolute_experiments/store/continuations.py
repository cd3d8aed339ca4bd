"""Requested continuations of ended experiments that are not carried out yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_experiments.states import ExperimentState
from resolute_experiments.store.schema import continuations


@dataclass(frozen=True, kw_only=True)
class Continuation:
    """One row of ``continuations``."""

    position: int
    request_id: str
    experiment_id: str
    previous_state: ExperimentState
    previous_config: dict[str, Any]
    max_trials: int | None
    max_length: int | None
    trial_ids: tuple[str, ...]
    carried_out: bool

    @property
    def extends(self) -> bool:
        """Whether the search is given more to do."""
        return self.max_trials is not None or self.max_length is not None


def insert(connection: Connection, values: dict[str, Any]) -> None:
    """Writes what was asked; to be carried out."""
    connection.execute(sa.insert(continuations).values(carried_out=False, **values))


def get(connection: Connection, continuation_id: str) -> Continuation:
    """Reads what was asked, by its UUID."""
    query = sa.select(continuations).where(continuations.c.request_id == continuation_id)
    return _from_row(connection.execute(query).one())


def pending(connection: Connection, experiment_id: str) -> list[Continuation]:
    """Reads what is still to be carried out for an experiment, in order."""
    query = sa.select(continuations).where(
        continuations.c.experiment_id == experiment_id, sa.not_(continuations.c.carried_out)
    )
    return [_from_row(row) for row in connection.execute(query.order_by(continuations.c.position))]


def finish(connection: Connection, request_id: str) -> None:
    """Notes that it was carried out, or refused."""
    connection.execute(
        sa.update(continuations).where(continuations.c.request_id == request_id).values(carried_out=True)
    )


def _from_row(row: sa.Row[Any]) -> Continuation:
    values = dict(row._mapping)
    values["previous_state"] = ExperimentState(values["previous_state"])
    values["trial_ids"] = tuple(values["trial_ids"])
    return Continuation(**values)
