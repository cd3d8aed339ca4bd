"""The tables of experiments, trials and sources, with the stored bytes of trials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import FailedPreconditionError, InvalidArgumentError
from resolute_serving.database.engine import insert_new
from resolute_serving.ingestion.batches import MAX_SOURCE_LENGTH, Origin
from resolute_serving.ingestion.byte_limits import NOTHING_STORED, Usage
from resolute_serving.validation import invalid

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""Type of keys that the database gives; SQLite counts up only columns that are declared INTEGER."""
MAX_SOURCES = 10_000
"""Most sources of one run. Their rows count to no limit of bytes, and each process has a few."""
MAX_DROPPED = 1000


@dataclass(frozen=True, slots=True)
class Admission:
    """A source whose trial is locked: until this transaction ends, no other one can add to it."""

    experiment_key: int
    trial_key: int
    source_key: int
    next_sequence: int
    """Everything of the source below it is stored."""
    usage: Usage = NOTHING_STORED
    """What the trial has stored."""

    def stored_count(self, first_sequence: int) -> int:
        """How many items at the front of a batch are stored already.

        Raises:
            FailedPreconditionError: Items before the batch are missing; ``metadata`` has the sequence.
        """
        if first_sequence > self.next_sequence:
            raise FailedPreconditionError(
                f"the batch begins at sequence {first_sequence} and {self.next_sequence} was expected; "
                "send what is missing first",
                metadata={"expected_sequence": str(self.next_sequence)},
            )
        return self.next_sequence - first_sequence


class IngestionTables:
    """The tables of experiments, trials and sources in a service's own database.

    Args:
        metadata: The metadata object of the service's tables.
        prefix: Prefix of the tables' names, if the service has other tables with these names.
    """

    def __init__(self, metadata: sa.MetaData, *, prefix: str = "") -> None:
        self.experiments = sa.Table(
            f"{prefix}experiments",
            metadata,
            sa.Column("experiment_key", KEY, primary_key=True),
            sa.Column("experiment_id", sa.String(36), nullable=False, unique=True),
            sa.Column("deleted_at", sa.Float),
        )
        self.trials = sa.Table(
            f"{prefix}trials",
            metadata,
            sa.Column("trial_key", KEY, primary_key=True),
            sa.Column("trial_id", sa.String(36), nullable=False, unique=True),
            sa.Column("experiment_key", KEY, nullable=False, index=True),
            # The workspace of the last run that sent something; zero when it is not known.
            sa.Column("workspace", sa.BigInteger, nullable=False, server_default="0", index=True),
            # See ``Usage``.
            sa.Column("bytes", sa.BigInteger, nullable=False, server_default="0"),
            sa.Column("dropped", sa.BigInteger, nullable=False, server_default="0"),
            sa.Column("dropped_bytes", sa.BigInteger, nullable=False, server_default="0"),
            sa.Column("told", sa.BigInteger, key="last_reported", nullable=False, server_default="0"),
            sa.Column("byte_limit", sa.Text, nullable=False, server_default=""),
        )
        self.sources = sa.Table(
            f"{prefix}sources",
            metadata,
            sa.Column("source_key", KEY, primary_key=True),
            sa.Column("trial_key", KEY, nullable=False),
            sa.Column("run", sa.Integer, nullable=False),
            sa.Column("source", sa.String(MAX_SOURCE_LENGTH), nullable=False),
            sa.Column("next_sequence", sa.BigInteger, nullable=False),
            sa.UniqueConstraint("trial_key", "run", "source"),
        )
        self._statements = _Statements(self)

    def admit(self, connection: Connection, origin: Origin) -> Admission | None:
        """Finds or makes the rows of an origin and locks its trial until the transaction ends.

        Returns:
            The source; None when the experiment was deleted.

        Raises:
            InvalidArgumentError: The trial belongs to another experiment, or its run has too many sources.
        """
        experiment_key, deleted = self._experiment(connection, origin.experiment_id)
        if deleted:
            return None
        trial_key, usage = self._trial(connection, origin, experiment_key)
        source_key, next_sequence = self._source(connection, origin, trial_key)
        return Admission(experiment_key, trial_key, source_key, next_sequence, usage)

    def advance(self, connection: Connection, admission: Admission, next_sequence: int) -> None:
        """Remembers that everything of a source below ``next_sequence`` is stored."""
        connection.execute(self._statements.advance, {"key": admission.source_key, "reached": next_sequence})

    def save_usage(self, connection: Connection, trial_key: int, usage: Usage, *, workspace: int) -> None:
        """Remembers what a trial has stored.

        Args:
            connection: Writes.
            trial_key: The trial, whose lock is held.
            usage: What it has stored now.
            workspace: Number of its workspace; zero when the caller does not know it.
        """
        values = {"key": trial_key, "new_workspace": workspace, **_usage_values(usage)}
        connection.execute(self._statements.save_usage, values)

    def lock_usage(self, connection: Connection, trial_id: str) -> tuple[int, Usage] | None:
        """Locks a trial until the transaction ends; returns its key and usage, None for an unknown one."""
        row = connection.execute(self._statements.trial, {"trial_id": trial_id}).one_or_none()
        return None if row is None else (int(row.trial_key), _usage(row))

    def give_back(self, connection: Connection, sizes: Mapping[int, int]) -> None:
        """Counts bytes of trials, by their keys, as stored no longer."""
        for trial_key, size in sorted(sizes.items()):
            connection.execute(self._statements.give_back, {"key": trial_key, "size": size})

    def dropped(self, connection: Connection, experiment_id: str) -> list[tuple[str, Usage]]:
        """The trials of an experiment of which something was dropped, by UUID, those with the most first."""
        trials, experiments = self.trials, self.experiments
        rows = connection.execute(
            sa.select(trials)
            .join(experiments, experiments.c.experiment_key == trials.c.experiment_key)
            .where(experiments.c.experiment_id == experiment_id, trials.c.dropped > 0)
            .order_by(trials.c.dropped_bytes.desc(), trials.c.trial_key)
            .limit(MAX_DROPPED)
        )
        return [(row.trial_id, _usage(row)) for row in rows]

    def find_trial(self, connection: Connection, trial_id: str) -> int | None:
        """The key of a trial; None for one that never sent anything, or that was deleted."""
        return self.find_trials(connection, [trial_id]).get(trial_id)

    def find_trials(self, connection: Connection, trial_ids: list[str]) -> dict[str, int]:
        """The keys of those trials that are known and not deleted."""
        trials, experiments = self.trials, self.experiments
        rows = connection.execute(
            sa.select(trials.c.trial_id, trials.c.trial_key)
            .join(experiments, experiments.c.experiment_key == trials.c.experiment_key)
            .where(trials.c.trial_id.in_(trial_ids), experiments.c.deleted_at.is_(None))
        )
        return {row.trial_id: row.trial_key for row in rows}

    def trials_of(self, connection: Connection, experiment_id: str) -> dict[int, str]:
        """The trials of an experiment that have sent something, UUIDs by keys; none of a deleted one."""
        trials = self.trials
        query = sa.select(trials.c.trial_key, trials.c.trial_id)
        rows = connection.execute(query.where(trials.c.trial_key.in_(self.keys_of(experiment_id))))
        return {row.trial_key: row.trial_id for row in rows}

    def keys_of(self, experiment_id: str) -> sa.Select[tuple[int]]:
        """Selects the keys of the trials of an experiment that was not deleted."""
        trials, experiments = self.trials, self.experiments
        return (
            sa.select(trials.c.trial_key)
            .join(experiments, experiments.c.experiment_key == trials.c.experiment_key)
            .where(experiments.c.experiment_id == experiment_id, experiments.c.deleted_at.is_(None))
        )

    def experiment_of(self, connection: Connection, trial_id: str) -> str:
        """UUID of a trial's experiment; empty for a trial that never sent anything."""
        trials, experiments = self.trials, self.experiments
        query = (
            sa.select(experiments.c.experiment_id)
            .join(trials, trials.c.experiment_key == experiments.c.experiment_key)
            .where(trials.c.trial_id == trial_id)
        )
        return connection.execute(query).scalar_one_or_none() or ""

    def _experiment(self, connection: Connection, experiment_id: str) -> tuple[int, bool]:
        query, values = self._statements.experiment, {"experiment_id": experiment_id}
        row = connection.execute(query, values).one_or_none()
        if row is None:
            insert_new(connection, self.experiments, values)
            row = connection.execute(query, values).one()
        return row.experiment_key, row.deleted_at is not None

    def _trial(self, connection: Connection, origin: Origin, experiment_key: int) -> tuple[int, Usage]:
        query, values = self._statements.trial, {"trial_id": origin.trial_id}
        row = connection.execute(query, values).one_or_none()
        if row is None:
            insert_new(connection, self.trials, {**values, "experiment_key": experiment_key})
            row = connection.execute(query, values).one()
        if row.experiment_key != experiment_key:
            raise InvalidArgumentError(
                f"trial {origin.trial_id} belongs to another experiment than {origin.experiment_id}; "
                "send the two that belong together"
            )
        return int(row.trial_key), _usage(row)

    def _source(self, connection: Connection, origin: Origin, trial_key: int) -> tuple[int, int]:
        # A statement of its own, after the trial's lock: only then does it see what the lock waited for.
        query = self._statements.source
        values = {"trial_key": trial_key, "run": origin.run, "source": origin.source}
        row = connection.execute(query, values).one_or_none()
        if row is None:
            if connection.execute(self._statements.source_count, values).scalar_one() >= MAX_SOURCES:
                raise invalid(
                    "source",
                    f"run {origin.run} of trial {origin.trial_id} has sent from {MAX_SOURCES} sources; "
                    "use one spool for all reports of a process",
                )
            insert_new(connection, self.sources, {**values, "next_sequence": 0})
            row = connection.execute(query, values).one()
        return int(row.source_key), int(row.next_sequence)


class _Statements:
    """The statements for every batch. They are built once, because building costs as much as executing."""

    def __init__(self, tables: IngestionTables) -> None:
        experiments, trials, sources = tables.experiments, tables.trials, tables.sources
        # Shared with other batches of the experiment; its deletion waits for them and they for it.
        self.experiment = (
            sa.select(experiments.c.experiment_key, experiments.c.deleted_at)
            .where(experiments.c.experiment_id == sa.bindparam("experiment_id"))
            .with_for_update(read=True)
        )
        self.trial = sa.select(trials).where(trials.c.trial_id == sa.bindparam("trial_id")).with_for_update()
        self.source = sa.select(sources.c.source_key, sources.c.next_sequence).where(
            sources.c.trial_key == sa.bindparam("trial_key"),
            sources.c.run == sa.bindparam("run"),
            sources.c.source == sa.bindparam("source"),
        )
        self.source_count = sa.select(sa.func.count()).where(
            sources.c.trial_key == sa.bindparam("trial_key"), sources.c.run == sa.bindparam("run")
        )
        self.advance = (
            sources.update()
            .where(sources.c.source_key == sa.bindparam("key"))
            .values(next_sequence=sa.bindparam("reached"))
        )
        workspace = sa.bindparam("new_workspace", type_=sa.BigInteger)
        self.save_usage = (
            trials.update()
            .where(trials.c.trial_key == sa.bindparam("key"))
            .values(
                workspace=sa.case((workspace > 0, workspace), else_=trials.c.workspace),
                **{name: sa.bindparam(f"new_{name}") for name in _USAGE_COLUMNS},
            )
        )
        left = trials.c.bytes - sa.bindparam("size", type_=sa.BigInteger)
        self.give_back = (
            trials.update()
            .where(trials.c.trial_key == sa.bindparam("key"))
            .values(bytes=sa.case((left > 0, left), else_=0))
        )


_USAGE_COLUMNS = ("bytes", "dropped", "dropped_bytes", "last_reported", "byte_limit")


def _usage(row: Any) -> Usage:
    return Usage(row.bytes, row.dropped, row.dropped_bytes, row.last_reported, row.byte_limit)


def _usage_values(usage: Usage) -> dict[str, Any]:
    values = usage.bytes, usage.dropped, usage.dropped_bytes, usage.last_reported, usage.limit
    return {f"new_{name}": value for name, value in zip(_USAGE_COLUMNS, values, strict=True)}
