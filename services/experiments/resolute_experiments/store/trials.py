"""Trials in the database."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import NotFoundError
from resolute_experiments.states import ENDED_TRIALS, TRAINING_TRIALS, TrialState
from resolute_experiments.store import experiments as experiment_store
from resolute_experiments.store import trial_transitions
from resolute_experiments.store.schema.trials import Trial as Trial  # noqa: PLC0414 - also for callers
from resolute_experiments.store.schema.trials import trials
from resolute_serving.pagination import Ordering

_BATCH = 500
"""Parameters of one statement."""


_FIELDS = tuple(field.name for field in fields(Trial))
_ORDERING = Ordering(
    {
        "number": trials.c.number,
        "create_time": trials.c.created_at,
        "end_time": trials.c.ended_at,
        "state": trials.c.state,
        "restarts": trials.c.restarts,
        "steps_completed": trials.c.steps_completed,
        "reported_steps": trials.c.reported_steps,
        "steps_per_second": trials.c.steps_per_second,
        "best_validation": trials.c.best_value,
        "last_validation": trials.c.last_value,
    },
    unique=trials.c.number,
    default="number",
)


_READ = sa.select(*(column for column in trials.c if column.name != "notes"))
"""Trials without their notes, which may be long and are read for one trial alone."""
_NOTES = sa.select(trials.c.notes).where(trials.c.id == sa.bindparam("trial_id"))
_BY_ID = _READ.where(trials.c.id == sa.bindparam("trial_id"))
_BY_NUMBER = _READ.where(trials.c.number == sa.bindparam("number"))
_OF_EXPERIMENT = trials.c.experiment_id == sa.bindparam("experiment_id")
_CHANGED = _READ.where(_OF_EXPERIMENT, trials.c.revision > sa.bindparam("revision")).order_by(trials.c.number)
_NOT_ENDED = trials.c.state.not_in([state.value for state in ENDED_TRIALS])
_UNFINISHED = _READ.where(_OF_EXPERIMENT, _NOT_ENDED).order_by(trials.c.number)
_RATE = sa.select(sa.func.sum(trials.c.steps_per_second)).where(
    _OF_EXPERIMENT,
    trials.c.state.in_([state.value for state in TRAINING_TRIALS]),
    trials.c.reported_run == trials.c.run,
)
_ANY_UNFINISHED = sa.select(trials.c.id).where(_OF_EXPERIMENT, _NOT_ENDED).limit(1)
_IS_QUEUED = trials.c.state == TrialState.QUEUED.value
_ANY_QUEUED = sa.select(trials.c.id).where(_IS_QUEUED).limit(1)
_QUEUED_COUNT = sa.select(sa.func.count()).where(_IS_QUEUED)


def insert(connection: Connection, values: dict[str, Any], *, search_event: int | None = None) -> None:
    """Writes a trial, unless it is there already.

    Args:
        connection: A transaction.
        values: The columns.
        search_event: Position in the log of its search of the event that asked for it.
    """
    known = connection.execute(sa.select(trials.c.id).where(trials.c.id == values["id"])).one_or_none()
    if known is None:
        revision = experiment_store.touch(connection, values["experiment_id"])
        connection.execute(sa.insert(trials).values(revision=revision, life=0, **values))
        trial_transitions.record(
            connection,
            trial_transitions.TrialTransition(
                trial_id=values["id"],
                time=values["created_at"],
                event=trial_transitions.CREATE,
                to_state=values["state"],
                search_event=search_event,
            ),
        )


def get(connection: Connection, *, number: int = 0, trial_id: str = "") -> Trial:
    """Reads a trial by its number or its UUID.

    Raises:
        NotFoundError: There is none.
    """
    if trial_id:
        row = connection.execute(_BY_ID, {"trial_id": trial_id}).one_or_none()
    else:
        row = connection.execute(_BY_NUMBER, {"number": number}).one_or_none()
    if row is None:
        label = trial_id or str(number)
        raise NotFoundError(
            f"trial {label} does not exist; `resolute experiment list-trials ID` shows those that do",
            resource=f"trial {label}",
        )
    return _from_row(row)


def notes(connection: Connection, trial_id: str) -> str:
    """Reads what people wrote of a trial that exists."""
    return str(connection.execute(_NOTES, {"trial_id": trial_id}).scalar_one())


def known(connection: Connection, ids: Collection[str]) -> dict[str, Trial]:
    """Reads those of some trials that exist, by UUID."""
    rows = connection.execute(_READ.where(trials.c.id.in_(ids)))
    return {row.id: _from_row(row) for row in rows}


def by_external_id(connection: Connection, experiment_id: str, external_id: str) -> Trial | None:
    """Reads the trial that is known by a name outside of the cluster, if there is one."""
    query = _READ.where(trials.c.experiment_id == experiment_id, trials.c.external_id == external_id)
    row = connection.execute(query).one_or_none()
    return None if row is None else _from_row(row)


def of_experiment(connection: Connection, experiment_id: str, *, revision: int = 0) -> list[Trial]:
    """Reads an experiment's trials by number.

    Args:
        connection: Where from.
        experiment_id: UUID of the experiment.
        revision: Only trials that changed after this revision.
    """
    wanted = {"experiment_id": experiment_id, "revision": revision}
    return [_from_row(row) for row in connection.execute(_CHANGED, wanted)]


def ids_of(connection: Connection, experiment_id: str) -> frozenset[str]:
    """Reads the ids of an experiment's trials."""
    query = sa.select(trials.c.id).where(trials.c.experiment_id == experiment_id)
    return frozenset(connection.execute(query).scalars())


@dataclass(frozen=True, kw_only=True)
class TrialNumber:
    """The identifiers of a trial."""

    number: int
    key: str
    """Within its search."""
    trial_id: str


def numbers(
    connection: Connection, experiment_id: str, *, after: int, limit: int, trial_ids: Collection[str] = ()
) -> list[TrialNumber]:
    """Reads by which numbers people know the trials of an experiment, ascending.

    Args:
        connection: Where from.
        experiment_id: UUID of the experiment.
        after: Only larger numbers.
        limit: Most trials.
        trial_ids: Only these; empty for all.
    """
    query = sa.select(trials.c.number, trials.c.request_id, trials.c.id).where(
        trials.c.experiment_id == experiment_id, trials.c.number > after
    )
    if trial_ids:
        query = query.where(trials.c.id.in_(trial_ids))
    rows = connection.execute(query.order_by(trials.c.number).limit(limit))
    return [TrialNumber(number=number, key=key, trial_id=trial_id) for number, key, trial_id in rows]


def page(
    connection: Connection, request: Any, experiment_id: str, *, states: Collection[TrialState]
) -> tuple[list[Trial], str]:
    """Reads a page of an experiment's trials.

    Args:
        connection: Where from.
        request: A ``ListTrialsRequest``: has the size, the token, the order and which trials.
        experiment_id: UUID of the experiment.
        states: Only these; empty for all.

    Returns:
        The trials, and the token of the next page.
    """
    query = _READ.where(trials.c.experiment_id == experiment_id)
    if states:
        query = query.where(trials.c.state.in_([state.value for state in states]))
    if request.trial_ids:
        query = query.where(trials.c.id.in_(request.trial_ids))
    if request.started:
        query = query.where(sa.or_(trials.c.run > 0, trials.c.last_steps.is_not(None)))
    if request.without_diverged:
        query = query.where(sa.or_(trials.c.last_steps.is_(None), trials.c.last_value.is_not(None)))
    page_rows = _ORDERING.page(connection, request, query)
    return [_from_mapping(row) for row in page_rows.rows], page_rows.next_page_token


def unfinished(connection: Connection, experiment_id: str) -> list[Trial]:
    """Reads an experiment's trials that have not ended, by number."""
    return [_from_row(row) for row in connection.execute(_UNFINISHED, {"experiment_id": experiment_id})]


def training_rate(connection: Connection, experiment_id: str) -> float | None:
    """Adds up the steps per second of the trials that train; None where none has reported twice."""
    rate: float | None = connection.execute(_RATE, {"experiment_id": experiment_id}).scalar_one()
    return rate or None


def any_unfinished(connection: Connection, experiment_id: str) -> bool:
    """Whether some trial of an experiment has not ended."""
    return connection.execute(_ANY_UNFINISHED, {"experiment_id": experiment_id}).one_or_none() is not None


def any_validated(connection: Connection, experiment_id: str) -> bool:
    """Whether some trial of an experiment has reported the metric that its search goes by."""
    query = sa.select(trials.c.id).where(
        trials.c.experiment_id == experiment_id, trials.c.last_steps.is_not(None)
    )
    return connection.execute(query.limit(1)).one_or_none() is not None


def any_queued(connection: Connection) -> bool:
    """Whether some trial waits for slots."""
    return connection.execute(_ANY_QUEUED).one_or_none() is not None


def queued_count(connection: Connection) -> int:
    """Counts the trials that wait for slots."""
    return int(connection.execute(_QUEUED_COUNT).scalar_one())


def sources(connection: Connection, checkpoint_ids: Collection[str]) -> set[str]:
    """Finds which of some checkpoints trials of any experiment began from."""
    ids, trial_ids = sorted(checkpoint_ids), set[str]()
    for start in range(0, len(ids), _BATCH):
        column = trials.c.source_checkpoint_id
        query = sa.select(column).where(column.in_(ids[start : start + _BATCH])).distinct()
        trial_ids.update(connection.execute(query).scalars())
    return trial_ids


def update(connection: Connection, trial: Trial, **values: Any) -> None:
    """Changes columns of a trial and raises the revision of both, it and its experiment."""
    revision = experiment_store.touch(connection, trial.experiment_id)
    connection.execute(sa.update(trials).where(trials.c.id == trial.id).values(revision=revision, **values))


def _from_row(row: sa.Row[Any]) -> Trial:
    return _from_mapping(row._mapping)


def _from_mapping(row: Mapping[Any, Any]) -> Trial:
    values = {name: row[name] for name in _FIELDS}
    values["state"] = TrialState(values["state"])
    values["excluded_nodes"] = tuple(values["excluded_nodes"])
    values["labels"] = tuple(values["labels"])
    return Trial(**values)
