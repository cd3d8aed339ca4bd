"""Stores a batch of reports in one transaction, which also advances the source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_metrics.ingest.conflicts import Refusal, merge_pieces, resolve
from resolute_metrics.ingest.fitting import Fitted, fit
from resolute_metrics.ingest.history import StoredHistory
from resolute_metrics.ingest.names import NameCounter, name_error
from resolute_metrics.ingest.parsing import Batch
from resolute_metrics.limits import Limits
from resolute_metrics.queries import validations
from resolute_metrics.store import blocks, streams
from resolute_metrics.store.rows import Piece
from resolute_metrics.store.schema import INTAKE
from resolute_metrics.store.schema import refusals as refusals_table
from resolute_metrics.store.streams import Stream
from resolute_serving.ingestion.byte_limits import NOTHING_STORED, Room, Usage, room_of, used
from resolute_serving.ingestion.tables import Admission

_FORGET = refusals_table.delete().where(
    refusals_table.c.source_key == sa.bindparam("key"), refusals_table.c.sequence < sa.bindparam("first")
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of storing a batch."""

    next_sequence: int
    """Everything of the source below it is durable, or refused."""
    refusals: Sequence[Refusal]
    """Which reports of the batch break a rule, the first time it came or now."""
    usage: Usage = NOTHING_STORED
    """What its trial has stored, and what of it was dropped."""


def ingest(
    connection: Connection,
    batch: Batch,
    *,
    limits: Limits,
    workspace: int = 0,
    workspace_room: int | None = None,
) -> Outcome:
    """Stores the new reports of a batch, up to the limits.

    Args:
        connection: Writes.
        batch: Reports of one source.
        limits: Bounds of its trial.
        workspace: Number of its workspace; zero when it is not known.
        workspace_room: Bytes that its workspace may still store; None for no limit.

    Raises:
        FailedPreconditionError: Reports before the batch are missing.
        InvalidArgumentError: The trial belongs to another experiment.
    """
    admission = INTAKE.admit(connection, batch.origin)
    if admission is None:
        return Outcome(batch.end, ())
    stored = admission.stored_count(batch.first_sequence)
    before = _refused(connection, admission, batch) if stored else []
    if stored >= batch.count:
        return Outcome(admission.next_sequence, before, admission.usage)
    pieces = _new_pieces(batch, admission) if stored else list(batch.pieces)
    room = room_of(admission.usage, limits.bytes, workspace_room=workspace_room)
    refused, fitted = _Writer(connection, batch, admission, limits).store(pieces, room)
    usage = used(
        admission.usage,
        room,
        stored=fitted.kept_bytes,
        dropped=fitted.dropped_reports,
        dropped_bytes=fitted.dropped_bytes,
    )
    INTAKE.save_usage(connection, admission.trial_key, usage, workspace=workspace)
    _remember(connection, admission, refused, batch.first_sequence)
    INTAKE.advance(connection, admission, batch.end)
    return Outcome(batch.end, before + sorted(refused, key=lambda refusal: refusal.sequence), usage)


def _new_pieces(batch: Batch, admission: Admission) -> list[Piece]:
    pieces = [piece.where(piece.rows.sequences >= admission.next_sequence) for piece in batch.pieces]
    return [piece for piece in pieces if len(piece.rows)]


class _Writer:
    """Stores the new reports of one batch."""

    def __init__(self, connection: Connection, batch: Batch, admission: Admission, limits: Limits) -> None:
        self._connection = connection
        self._batch = batch
        self._admission = admission
        self._limits = limits

    def store(self, pieces: Sequence[Piece], room: Room) -> tuple[list[Refusal], Fitted]:
        """Stores pieces while they fit; returns the refused reports and the stored ones."""
        named, refused = _split_by_names(pieces)
        if not named:
            return refused, fit((), room)
        trial, run = self._admission.trial_key, self._batch.origin.run
        groups = sorted({piece.group for piece in named})
        known = streams.load_run(self._connection, trial, run=run, groups=groups)
        counted, too_many = self._count_names(named, known)
        refused += too_many
        kept: list[Piece] = []
        for group in groups:
            history = StoredHistory(self._connection, [one for one in known if one.group == group])
            new = merge_pieces([piece for piece in counted if piece.group == group])
            if new:
                settled, contradictions = resolve(new, history, decisive=self._decisive(group))
                kept += settled
                refused += contradictions
        own = {
            (stream.group, stream.names): stream
            for stream in known
            if stream.source_key == self._admission.source_key
        }
        fitted = fit(kept, room)
        for piece in fitted.kept:
            self._append(piece, own.get((piece.group, piece.names)))
        # What searches and retention decide by is small, and stays right without the points.
        self._update_validations(kept)
        return refused, fitted

    def _decisive(self, group: str) -> str | None:
        goal = self._batch.goal
        return goal.metric if goal is not None and group == validations.GROUP else None

    def _count_names(
        self, pieces: Sequence[Piece], known: Sequence[Stream]
    ) -> tuple[list[Piece], list[Refusal]]:
        counter = NameCounter(
            known,
            whole_trial=lambda: streams.load(self._connection, [self._admission.trial_key]),
            limits=self._limits,
        )
        counted, refused = [], []
        for piece in pieces:
            fault = counter.count_error(piece)
            if fault is None:
                counted.append(piece)
            else:
                refused += _refuse(piece, fault)
        return counted, refused

    def _append(self, piece: Piece, stream: Stream | None) -> None:
        if stream is None:
            stream = streams.new_stream(
                piece,
                trial_key=self._admission.trial_key,
                run=self._batch.origin.run,
                source_key=self._admission.source_key,
            )
        small = blocks.is_small(len(piece.rows), len(piece.names))
        stream = stream.extended(piece, small=small)
        merge = stream.small_blocks >= blocks.MERGE_AFTER
        stream = streams.save(self._connection, replace(stream, small_blocks=0) if merge else stream)
        blocks.add(self._connection, stream.key, piece.rows)
        if merge:
            blocks.merge_tail(self._connection, stream.key, names=len(piece.names))

    def _update_validations(self, pieces: Sequence[Piece]) -> None:
        if self._batch.goal is not None:
            validations.update(
                self._connection,
                trial_key=self._admission.trial_key,
                experiment_key=self._admission.experiment_key,
                run=self._batch.origin.run,
                goal=self._batch.goal,
                pieces=pieces,
            )


def _split_by_names(pieces: Sequence[Piece]) -> tuple[list[Piece], list[Refusal]]:
    named, refused = [], []
    for piece in pieces:
        fault = name_error(piece)
        if fault is None:
            named.append(piece)
        else:
            refused += _refuse(piece, fault)
    return named, refused


def _refuse(piece: Piece, message: str) -> list[Refusal]:
    return [Refusal(sequence, message) for sequence in piece.rows.sequences.tolist()]


def _remember(
    connection: Connection, admission: Admission, refused: Sequence[Refusal], first_sequence: int
) -> None:
    """Stores refusals until a later batch begins: until then, the response may have been lost."""
    connection.execute(_FORGET, {"key": admission.source_key, "first": first_sequence})
    if refused:
        connection.execute(
            refusals_table.insert(),
            [
                {"source_key": admission.source_key, "sequence": report.sequence, "message": report.message}
                for report in refused
            ],
        )


def _refused(connection: Connection, admission: Admission, batch: Batch) -> list[Refusal]:
    table = refusals_table
    rows = connection.execute(
        sa.select(table.c.sequence, table.c.message)
        .where(
            table.c.source_key == admission.source_key,
            table.c.sequence >= batch.first_sequence,
            table.c.sequence < batch.end,
        )
        .order_by(table.c.sequence)
    )
    return [Refusal(row.sequence, row.message) for row in rows]
