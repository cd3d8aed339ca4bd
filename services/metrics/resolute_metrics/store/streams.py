"""Streams: the reports of one source with the same names in the same group."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_metrics.store import aggregates
from resolute_metrics.store.rows import Floats, Piece, is_number
from resolute_metrics.store.schema import streams as table

MAX_KEPT_TEXT = 4096
"""Most characters, as JSON, of a last value that a summary repeats."""
_KINDS: Mapping[type, str] = {type(None): "null", bool: "bool", str: "string", list: "list", dict: "map"}


@dataclass(frozen=True, slots=True)
class NonNumericValue:
    """The last non-numeric value of a name."""

    kind: str
    """``null``, ``bool``, ``string``, ``list`` or ``map``."""
    steps: int
    sequence: int
    value: Any = None
    """The value, unless it is large."""
    kept: bool = False
    """Whether ``value`` is it."""


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """One stream with its aggregates."""

    key: int
    trial_key: int
    run: int
    source_key: int
    group: str
    names: tuple[str, ...]
    """Its columns, sorted."""
    first_step: int
    last_step: int
    last_sequence: int
    """Sequence of the newest report among those with the most steps."""
    small_blocks: int
    """Small blocks that were added since some were last put together."""
    aggregates: Floats
    others: Mapping[str, NonNumericValue]
    """By name, for names that were not always numbers."""
    last_time: float
    """Unix time of its newest report."""

    def fields(self) -> frozenset[str]:
        """The names of all values that the stream has had."""
        return frozenset(self.names).union(self.others)

    def extended(self, piece: Piece, *, small: bool) -> Stream:
        """Returns the stream with more rows."""
        rows = piece.rows
        newest = int(np.lexsort((rows.sequences, rows.steps))[-1])
        key = int(rows.steps[newest]), int(rows.sequences[newest])
        is_newer = key > (self.last_step, self.last_sequence)
        return replace(
            self,
            first_step=min(self.first_step, int(rows.steps.min())),
            last_step=key[0] if is_newer else self.last_step,
            last_sequence=key[1] if is_newer else self.last_sequence,
            small_blocks=self.small_blocks + small,
            aggregates=aggregates.extend(self.aggregates, rows.values, last=newest if is_newer else None),
            others=_newer_others(self.others, piece) if rows.extras else self.others,
            last_time=max(self.last_time, float(rows.times.max())),
        )


def new_stream(piece: Piece, *, trial_key: int, run: int, source_key: int) -> Stream:
    """Returns an empty stream for the rows of a piece."""
    return Stream(
        key=0,
        trial_key=trial_key,
        run=run,
        source_key=source_key,
        group=piece.group,
        names=piece.names,
        first_step=2**63 - 1,
        last_step=-(2**63),
        last_sequence=-1,
        small_blocks=0,
        aggregates=aggregates.empty(len(piece.names)),
        others={},
        last_time=0.0,
    )


def _newer_others(others: Mapping[str, NonNumericValue], piece: Piece) -> Mapping[str, NonNumericValue]:
    result = dict(others)
    for row, values in piece.rows.extras.items():
        position = int(piece.rows.steps[row]), int(piece.rows.sequences[row])
        for name, value in values.items():
            known = result.get(name)
            if not is_number(value) and (known is None or position > (known.steps, known.sequence)):
                kept = len(json.dumps(value)) <= MAX_KEPT_TEXT
                result[name] = NonNumericValue(_KINDS[type(value)], *position, value if kept else None, kept)
    return result


_OF_RUN = (
    sa.select(table)
    .where(
        table.c.trial_key == sa.bindparam("trial"),
        table.c.run == sa.bindparam("run_number"),
        table.c.group_name.in_(sa.bindparam("groups", expanding=True)),
    )
    .order_by(table.c.stream_key)
)
_UPDATE = table.update().where(table.c.stream_key == sa.bindparam("key"))


def load(connection: Connection, trial_keys: Iterable[int], *, groups: Collection[str] = ()) -> list[Stream]:
    """Reads the streams of trials, oldest first; of some groups, or of all."""
    query = sa.select(table).where(table.c.trial_key.in_(list(trial_keys))).order_by(table.c.stream_key)
    if groups:
        query = query.where(table.c.group_name.in_(list(groups)))
    return [_from_row(row) for row in connection.execute(query)]


def load_run(connection: Connection, trial_key: int, *, run: int, groups: Sequence[str]) -> list[Stream]:
    """Reads the streams of one run of a trial in some groups, oldest first."""
    rows = connection.execute(_OF_RUN, {"trial": trial_key, "run_number": run, "groups": groups})
    return [_from_row(row) for row in rows]


def save(connection: Connection, stream: Stream) -> Stream:
    """Writes a stream; a new one gets its key."""
    values: dict[str, Any] = {
        "first_step": stream.first_step,
        "last_step": stream.last_step,
        "last_sequence": stream.last_sequence,
        "small_blocks": stream.small_blocks,
        "aggregates": aggregates.encode(stream.aggregates),
        "others": _encode_others(stream.others),
        "last_time": stream.last_time,
    }
    if stream.key:
        connection.execute(_UPDATE, {**values, "key": stream.key})
        return stream
    names = json.dumps(stream.names)
    inserted = connection.execute(
        table.insert(),
        {
            **values,
            "trial_key": stream.trial_key,
            "run": stream.run,
            "source_key": stream.source_key,
            "group_name": stream.group,
            "names_digest": hashlib.sha256(names.encode()).hexdigest()[:32],
            "names": names,
        },
    )
    assert inserted.inserted_primary_key is not None
    return replace(stream, key=inserted.inserted_primary_key[0])


def _from_row(row: sa.Row[Any]) -> Stream:
    return Stream(
        key=row.stream_key,
        trial_key=row.trial_key,
        run=row.run,
        source_key=row.source_key,
        group=row.group_name,
        names=_names(row.names),
        first_step=row.first_step,
        last_step=row.last_step,
        last_sequence=row.last_sequence,
        small_blocks=row.small_blocks,
        aggregates=aggregates.decode(row.aggregates),
        others=_decode_others(row.others) if row.others != "{}" else {},
        last_time=row.last_time,
    )


@functools.lru_cache(maxsize=4096)
def _names(text: str) -> tuple[str, ...]:
    """Decodes names. Cached: trials of an experiment report the same ones."""
    return tuple(json.loads(text))


def _decode_others(text: str) -> Mapping[str, NonNumericValue]:
    return {name: NonNumericValue(*fields) for name, fields in json.loads(text).items()}


def _encode_others(others: Mapping[str, NonNumericValue]) -> str:
    return json.dumps(
        {
            name: (other.kind, other.steps, other.sequence, other.value, other.kept)
            for name, other in others.items()
        },
        separators=(",", ":"),
    )
