"""Stores batches of media exactly once: first contents, then one transaction that advances the source."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.contracts.clock import Clock
from resolute.errors import UnavailableError
from resolute_checkpoints.media.contents import Contents
from resolute_checkpoints.media.limits import Fitted, MediaLimits, Stored, fit
from resolute_checkpoints.media.values import Batch, Item, Refusal
from resolute_checkpoints.store.rows import encode_storage
from resolute_checkpoints.store.schema import MEDIA_INTAKE, media, media_places
from resolute_serving.database.engine import Database
from resolute_serving.ingestion.batches import store
from resolute_serving.ingestion.byte_limits import NOTHING_STORED, Usage, WorkspaceUsage, room_of
from resolute_serving.ingestion.tables import Admission

_DIGESTS_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of storing a batch."""

    next_sequence: int
    """Everything below is stored, refused or dropped."""
    refusals: Sequence[Refusal] = ()
    usage: Usage = NOTHING_STORED
    """What the trial has stored, and what was dropped of it."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """The part of a batch that would be stored now."""

    admission: Admission
    fitted: Fitted
    refusals: Sequence[Refusal]
    known: Mapping[str, int | None]
    """Contents that the experiment has already, with the place where each lies; none for small ones."""

    @property
    def unwritten(self) -> Mapping[str, Item]:
        """The objects whose contents must be written, by digest."""
        return {
            item.digest: item
            for item in self.fitted.kept
            if not item.is_small and item.digest not in self.known
        }


class Intake:
    """Stores batches.

    Args:
        database: The service's database.
        contents: Stores large contents.
        limits: Limits of a trial.
        clock: Clock for the interval between two lookups of a workspace's usage.
    """

    def __init__(self, database: Database, contents: Contents, *, limits: MediaLimits, clock: Clock) -> None:
        self._database = database
        self._contents = contents
        self._limits = limits
        self._workspaces = WorkspaceUsage(database, MEDIA_INTAKE.trials, limits=limits.bytes, clock=clock)

    async def ingest(self, batch: Batch, *, workspace: int, listed: bool) -> Outcome:
        """Stores the new media of a batch, up to the limits.

        Args:
            batch: Media of one source.
            workspace: Number of its workspace; zero when it is not known.
            listed: Whether its storage must be below a root: a script named it, not a config.

        Raises:
            FailedPreconditionError: Media before the batch are missing, or contents cannot be stored now.
            InvalidArgumentError: The trial belongs to another experiment.
            UnavailableError: The database cannot be reached, or its disk is full.
        """
        room = await self._workspaces.room(workspace)
        order, experiment = batch.origin.order, batch.origin.experiment_id

        def plan(connection: Connection) -> _Plan | None:
            return _plan(connection, batch, self._limits, workspace_room=room)

        planned = await store(self._database, plan, order=order)
        if planned is None:
            return Outcome(batch.end)
        written = planned.unwritten
        if written:
            await self._contents.write(batch.place, experiment, list(written.values()), listed=listed)

        def record(connection: Connection) -> Outcome | None:
            again = plan(connection)
            return None if again is None else _record(connection, batch, again, written, workspace=workspace)

        outcome = await store(self._database, record, order=order)
        if outcome is None:
            if written:
                # The experiment was deleted meanwhile, perhaps after its other contents were removed.
                await self._contents.remove(batch.place, experiment, sorted(written))
            return Outcome(batch.end)
        return outcome


def _plan(
    connection: Connection, batch: Batch, limits: MediaLimits, *, workspace_room: int | None
) -> _Plan | None:
    """Selects what is stored of a batch; None if its experiment was deleted."""
    admission = MEDIA_INTAKE.admit(connection, batch.origin)
    if admission is None:
        return None
    first = batch.first_sequence + admission.stored_count(batch.first_sequence)
    fresh = [item for item in batch.items if item.sequence >= first]
    refusals = [refusal for refusal in batch.refusals if refusal.sequence >= first]
    room = room_of(admission.usage, limits.bytes, workspace_room=workspace_room)
    stored = _stored(connection, admission, fresh, run=batch.origin.run)
    return _Plan(admission, fit(fresh, stored, room, limits), refusals, stored.digests)


def _stored(connection: Connection, admission: Admission, items: Sequence[Item], *, run: int) -> Stored:
    own = media.c.trial_key == admission.trial_key
    count = connection.execute(sa.select(sa.func.count()).where(own)).scalar_one()
    steps = connection.execute(
        sa.select(media.c.steps, sa.func.count(), sa.func.sum(media.c.size))
        .where(own, media.c.run == run, media.c.steps.in_({item.steps for item in items}))
        .group_by(media.c.steps)
    )
    return Stored(
        usage=admission.usage,
        count=count,
        steps={step: (number, int(total)) for step, number, total in steps},
        digests=known_contents(connection, admission.experiment_key, sorted({item.digest for item in items})),
    )


def known_contents(
    connection: Connection, experiment_key: int, digests: Sequence[str]
) -> Mapping[str, int | None]:
    """Returns the contents that an experiment has already, with the location of each."""
    known: dict[str, int | None] = {}
    for at in range(0, len(digests), _DIGESTS_AT_ONCE):
        some = digests[at : at + _DIGESTS_AT_ONCE]
        values = {f"digest_{number}": digest for number, digest in enumerate(some)}
        found = connection.execute(_first_of_each(len(some)), {"experiment": experiment_key, **values})
        known.update((row.digest, row.place_key) for row in found)
    return known


@cache
def _first_of_each(count: int) -> sa.CompoundSelect[Any]:
    """Selects one object of each digest: the same content may have been logged at each of many steps."""
    return sa.union_all(
        *(
            sa.select(
                sa.select(media.c.digest, media.c.place_key)
                .where(
                    media.c.experiment_key == sa.bindparam("experiment"),
                    media.c.digest == sa.bindparam(f"digest_{number}"),
                )
                .limit(1)
                .subquery(f"first_{number}")
            )
            for number in range(count)
        )
    )


def _record(
    connection: Connection, batch: Batch, plan: _Plan, written: Collection[str], *, workspace: int
) -> Outcome:
    admission = plan.admission
    if not plan.unwritten.keys() <= set(written):
        # There is more room than when the contents were written: other data went meanwhile.
        raise UnavailableError("what is stored has changed meanwhile; send the batch again")
    place = _place(connection, batch, admission.experiment_key) if plan.unwritten else None
    places = {**plan.known, **dict.fromkeys(plan.unwritten, place)}
    rows = [
        {
            "experiment_key": admission.experiment_key,
            "trial_key": admission.trial_key,
            "run": batch.origin.run,
            "name": item.name,
            "kind": item.kind.value,
            "steps": item.steps,
            "time": item.time,
            "caption": item.caption,
            "content_type": item.content_type,
            "size": len(item.content),
            "digest": item.digest,
            "content": item.content if item.is_small else None,
            "place_key": places.get(item.digest),
        }
        for item in plan.fitted.kept
    ]
    if rows:
        connection.execute(media.insert(), rows)
    reached = max(batch.end, admission.next_sequence)
    MEDIA_INTAKE.save_usage(connection, admission.trial_key, plan.fitted.usage, workspace=workspace)
    MEDIA_INTAKE.advance(connection, admission, reached)
    return Outcome(reached, plan.refusals, plan.fitted.usage)


def _place(connection: Connection, batch: Batch, experiment_key: int) -> int:
    """Returns the row of a batch's storage; its first large content creates the row."""
    values = {"experiment_key": experiment_key, "storage": encode_storage(batch.place)}
    query = sa.select(media_places.c.place_key).filter_by(**values)
    known = connection.execute(query.limit(1)).scalar_one_or_none()
    if known is not None:
        return int(known)
    made = connection.execute(media_places.insert().values(**values))
    assert made.inserted_primary_key is not None
    return int(made.inserted_primary_key[0])
