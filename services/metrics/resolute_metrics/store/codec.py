"""The encoding of rows in the database: little-endian numpy arrays, format 1.

``steps`` and ``sequences`` begin with a byte for their encoding. Nearly always they are an arithmetic
progression, stored as its first member and its stride. ``times`` and columns are plain doubles. The columns
of a block follow each other in ``matrix``; those of a tall block are rows of their own.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from resolute_metrics.store.rows import Floats, Integers, Rows

TALL = 256
"""Rows from which on columns are stored apart."""
_PLAIN, _PROGRESSION = 0, 1
_progression = struct.Struct("<Bqq")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of stored rows."""

    row_count: int
    first_step: int
    last_step: int
    steps: bytes
    sequences: bytes
    extras: str | None
    times: bytes
    matrix: bytes | None
    columns: Sequence[bytes] = ()
    """Each column, of a tall block."""


def encode(rows: Rows) -> Block:
    """Encodes rows."""
    # The one copy that turns rows of values into columns.
    by_column = np.ascontiguousarray(rows.values.T, dtype="<f8")
    tall = len(rows) >= TALL
    return Block(
        row_count=len(rows),
        first_step=int(rows.steps.min()),
        last_step=int(rows.steps.max()),
        steps=encode_integers(rows.steps),
        sequences=encode_integers(rows.sequences),
        extras=_encode_extras(rows.extras) if rows.extras else None,
        times=rows.times.astype("<f8", copy=False).tobytes(),
        matrix=None if tall else by_column.tobytes(),
        columns=[column.tobytes() for column in by_column] if tall else (),
    )


def decode(block: Block) -> Rows:
    """Decodes rows."""
    count = block.row_count
    if block.matrix is None:
        by_column = np.array([decode_floats(column) for column in block.columns], dtype=np.float64)
    else:
        by_column = decode_floats(block.matrix)
    return Rows(
        sequences=decode_integers(block.sequences, count),
        steps=decode_integers(block.steps, count),
        times=decode_floats(block.times),
        values=by_column.reshape(-1, count).T,
        extras=decode_extras(block.extras),
    )


def encode_integers(integers: Integers) -> bytes:
    """Encodes integers; an arithmetic progression takes 17 bytes."""
    first = int(integers[0])
    stride = int(integers[1]) - first if len(integers) > 1 else 0
    if abs(stride) < 2**31 and np.array_equal(integers, _count_from(first, stride, len(integers))):
        return _progression.pack(_PROGRESSION, first, stride)
    return bytes((_PLAIN,)) + integers.astype("<i8", copy=False).tobytes()


def decode_integers(data: bytes, count: int) -> Integers:
    """Decodes ``count`` integers."""
    if data[0] == _PROGRESSION:
        _, first, stride = _progression.unpack(data)
        return _count_from(first, stride, count)
    return np.frombuffer(data, dtype="<i8", offset=1).astype(np.int64, copy=False)


def decode_floats(data: bytes) -> Floats:
    """Decodes doubles."""
    return np.frombuffer(data, dtype="<f8").astype(np.float64, copy=False)


def decode_column(matrix: bytes, position: int, count: int) -> Floats:
    """Decodes one column of a block that is not tall."""
    return np.frombuffer(matrix, dtype="<f8", count=count, offset=8 * count * position).astype(
        np.float64, copy=False
    )


def decode_extras(text: str | None) -> dict[int, Mapping[str, Any]]:
    """Decodes the values that are not in columns."""
    return {int(row): values for row, values in json.loads(text).items()} if text else {}


def _encode_extras(extras: Mapping[int, Mapping[str, Any]]) -> str:
    return json.dumps(extras, separators=(",", ":"))


def _count_from(first: int, stride: int, count: int) -> Integers:
    result: Integers = np.int64(first) + np.int64(stride) * np.arange(count, dtype=np.int64)
    return result
