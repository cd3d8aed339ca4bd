"""Selects the reports of a batch that fit under the limits on bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from resolute_metrics.store.rows import NUMBER_BYTES, ROW_BYTES, Piece
from resolute_serving.ingestion.byte_limits import Room

DROPPED = "reports of this trial"
"""Names reports in notes on those that were dropped."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """The reports of a batch that fit, and the others."""

    kept: Sequence[Piece]
    kept_bytes: int
    dropped: Sequence[Piece]
    dropped_bytes: int

    @property
    def dropped_reports(self) -> int:
        """Number of reports that do not fit."""
        return sum(len(piece.rows) for piece in self.dropped)


def fit(pieces: Sequence[Piece], room: Room) -> Fitted:
    """Divides reports into those that fit, up to the first that does not, and the rest."""
    kept: list[Piece] = []
    dropped: list[Piece] = []
    kept_bytes = dropped_bytes = 0
    for piece in pieces:
        sizes = _sizes(piece)
        total = int(sizes.sum())
        if not dropped and room.takes(total):
            kept.append(piece)
            kept_bytes += total
            room = room.without(total)
            continue
        limit = 0 if dropped else room.bytes or 0
        fits = np.cumsum(sizes) <= limit
        if fits.any():
            kept.append(piece.where(fits))
        dropped.append(piece.where(~fits))
        kept_bytes += int(sizes[fits].sum())
        dropped_bytes += int(sizes[~fits].sum())
    return Fitted(kept, kept_bytes, dropped, dropped_bytes)


def _sizes(piece: Piece) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Returns the approximate size of each report in bytes."""
    sizes = np.full(len(piece.rows), ROW_BYTES + NUMBER_BYTES * len(piece.names), dtype=np.int64)
    for row, values in piece.rows.extras.items():
        sizes[row] += len(json.dumps(values))
    return sizes
