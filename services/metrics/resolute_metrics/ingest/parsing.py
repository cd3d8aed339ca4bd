"""Parses the messages of batches of reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from resolute.api.metrics.v1 import metrics_service_pb2 as api
from resolute.api.metrics.v1 import report_pb2
from resolute.contracts.values import from_value
from resolute.errors import InvalidArgumentError
from resolute_metrics.queries.validations import Goal
from resolute_metrics.store.rows import Piece, Rows, SingleReport, is_number, pieces_of
from resolute_serving.ingestion.batches import Origin, parse_origin, parse_sequence
from resolute_serving.validation import invalid


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive reports of one source."""

    origin: Origin
    first_sequence: int
    count: int
    """Reports in the batch; with no pieces, their sender had to leave them out."""
    pieces: Sequence[Piece]
    goal: Goal | None = None

    @property
    def end(self) -> int:
        """The sequence number after the last report of the batch."""
        return self.first_sequence + self.count


def parse_batch(request: api.IngestReportsRequest) -> Batch:
    """Converts a batch, and checks that it is complete.

    Raises:
        InvalidArgumentError: A field is wrong, or the blocks do not hold each sequence exactly once.
    """
    first = parse_sequence(request.first_sequence)
    if request.count < 0:
        raise invalid("count", f"count is {request.count}; it must be zero or above")
    pieces = [
        piece
        for index, block in enumerate(request.blocks)
        if block.sequences
        for piece in _parse_block(block, field=f"blocks[{index}]")
    ]
    _check_sequences(pieces, first, request.count)
    goal = Goal(request.searcher_metric, request.smaller_is_better) if request.searcher_metric else None
    return Batch(parse_origin(request), first, request.count, pieces, goal)


def _parse_block(block: report_pb2.ReportBlock, *, field: str) -> Iterable[Piece]:
    rows, names = len(block.sequences), tuple(block.names)
    if len(block.steps) != rows or len(block.times) != rows or len(block.values) != rows * len(names):
        raise invalid(
            field,
            f"{field} has {rows} sequences, {len(block.steps)} steps, {len(block.times)} times and "
            f"{len(block.values)} values for {len(names)} names; the columns must be of the same length",
        )
    if len(set(names)) != len(names):
        raise invalid(f"{field}.names", f"{field}.names holds a name twice")
    extras = {extra.row: _parse_extra(extra, block, field) for extra in block.extras}
    # Copied, so that nothing depends on the memory of the request.
    values = np.array(block.values, dtype=np.float64).reshape(rows, len(names))
    if sorted(names) != list(names):
        # One order of names, so that the same metrics always meet in the same columns.
        order = sorted(range(len(names)), key=names.__getitem__)
        names, values = tuple(names[place] for place in order), values[:, order]
    sequences = np.array(block.sequences, dtype=np.int64)
    steps = np.array(block.steps, dtype=np.int64)
    times = np.array(block.times, dtype=np.float64)
    piece = Piece(block.group, names, Rows(sequences, steps, times, values, extras))
    if any(is_number(value) for values in extras.values() for value in values.values()):
        return _with_numbers_in_columns(piece)
    return (piece,)


def _parse_extra(
    extra: report_pb2.ReportBlock.Extra, block: report_pb2.ReportBlock, field: str
) -> dict[str, Any]:
    if not 0 <= extra.row < len(block.sequences):
        raise invalid(f"{field}.extras", f"{field}.extras names row {extra.row}, which the block lacks")
    if twice := set(extra.values).intersection(block.names):
        raise invalid(f"{field}.extras", f"{field}.extras repeats {min(twice)!r}, which has a column")
    try:
        return {name: from_value(value) for name, value in sorted(extra.values.items())}
    except InvalidArgumentError as error:
        raise invalid(f"{field}.extras", f"{field}.extras, row {extra.row}: {error}") from error


def _with_numbers_in_columns(piece: Piece) -> Iterable[Piece]:
    """Copies numbers among the extras, which a double cannot hold exactly, into columns as well."""
    rows = piece.rows
    moved = np.zeros(len(rows), dtype=np.bool_)
    moved[list(rows.extras)] = True
    singles = [
        SingleReport(
            int(rows.sequences[row]), int(rows.steps[row]), float(rows.times[row]), piece.report(row)
        )
        for row in np.flatnonzero(moved).tolist()
    ]
    if not moved.all():
        yield piece.where(~moved)
    yield from pieces_of(piece.group, singles)


def _check_sequences(pieces: Sequence[Piece], first: int, count: int) -> None:
    if not pieces:
        return
    if any((np.diff(piece.rows.sequences) <= 0).any() for piece in pieces):
        raise invalid("blocks", "the sequences within a block must ascend")
    sequences = np.concatenate([piece.rows.sequences for piece in pieces])
    if len(sequences) != count or not np.array_equal(np.sort(sequences), np.arange(first, first + count)):
        raise invalid(
            "blocks",
            f"the blocks must hold each sequence from {first} to below {first + count} exactly once; "
            "send the batch whole, or no block at all to leave its reports out",
        )
