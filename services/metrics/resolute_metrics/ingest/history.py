"""The stored reports of a run in one group, looked up by steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy.engine import Connection

from resolute_metrics.store import blocks, codec
from resolute_metrics.store.rows import Integers, Piece
from resolute_metrics.store.streams import Stream

_NONE: Integers = np.array([], dtype=np.int64)


class StoredHistory:
    """Reads a block only if steps of new reports are in its range.

    Args:
        connection: Connection to the database.
        streams: The streams of the run in the group.
    """

    def __init__(self, connection: Connection, streams: Sequence[Stream]) -> None:
        self._connection = connection
        self._streams = streams
        self._last_steps = np.array([stream.last_step for stream in streams], dtype=np.int64)

    def steps_shared(self, piece: Piece) -> Integers:
        """Returns the steps of a piece at which one of its metrics was reported before."""
        steps = piece.rows.steps
        first, last = int(steps.min()), int(steps.max())
        candidates = np.flatnonzero(self._last_steps >= first).tolist()
        if not candidates:
            return _NONE
        fields = piece.fields()
        shared = [
            np.intersect1d(steps, codec.decode_integers(block.steps, block.row_count))
            for stream in (self._streams[place] for place in candidates)
            if not fields.isdisjoint(stream.fields())
            for block in blocks.overlapping(self._connection, stream.key, first_step=first, last_step=last)
        ]
        return np.concatenate(shared) if shared else _NONE

    def values_at(self, steps: Integers) -> dict[int, dict[str, Any]]:
        """Returns the values that count at some steps, by step and name."""
        found: list[tuple[float, int, dict[str, Any]]] = []
        first, last = int(steps[0]), int(steps[-1])
        for stream in self._streams:
            if stream.last_step < first or stream.first_step > last:
                continue
            for block in blocks.overlapping(self._connection, stream.key, first_step=first, last_step=last):
                present = np.isin(codec.decode_integers(block.steps, block.row_count), steps)
                if present.any():
                    piece = Piece(stream.group, stream.names, blocks.read(self._connection, block))
                    times, at = piece.rows.times, piece.rows.steps
                    found += [
                        (float(times[row]), int(at[row]), piece.report(row))
                        for row in np.flatnonzero(present).tolist()
                    ]
        known: dict[int, dict[str, Any]] = {}
        for _, step, values in sorted(found, key=lambda one: one[0]):
            known.setdefault(step, {}).update(values)
        return known
