"""Packs the state of a search into bytes, and unpacks it."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

_DIGEST = 32
# A piece is read while nothing else of the process can run: a piece of this size takes a millisecond or so.
_MAX_ITEMS = 1000
_MARK = ""


class CorruptStateError(ValueError):
    """The bytes are not a result of `pack`."""


def pack(state: Mapping[str, Any]) -> bytes:
    """Writes JSON values as compressed lines of JSON, with a checksum.

    Large lists and objects are split over lines, so that reading them never holds up other threads for long.
    """
    pieces: list[str] = []
    outline = json.dumps(_split(state, pieces))
    packed = zlib.compress("\n".join([outline, *pieces]).encode(), level=1)
    return hashlib.sha256(packed).digest() + packed


def unpack(packed: bytes) -> dict[str, Any]:
    """Decodes the bytes of `pack`.

    Raises:
        CorruptStateError: The bytes are not as they were written.
    """
    digest, body = packed[:_DIGEST], packed[_DIGEST:]
    if hashlib.sha256(body).digest() != digest:
        raise CorruptStateError("the packed state of a search is damaged")
    outline, *pieces = zlib.decompress(body).split(b"\n")
    state: dict[str, Any] = _join(json.loads(outline), pieces)
    return state


def _split(value: Any, pieces: list[str]) -> Any:
    """Returns a value with marks in place of large lists and objects, which it adds as pieces."""
    if not isinstance(value, Mapping | list | tuple):
        return value
    if len(value) > _MAX_ITEMS or (isinstance(value, Mapping) and _MARK in value):
        first = len(pieces)
        pieces += map(json.dumps, _pieces(value))
        return {_MARK: [isinstance(value, Mapping), first, len(pieces)]}
    if isinstance(value, Mapping):
        return {name: _split(one, pieces) for name, one in value.items()}
    return [_split(item, pieces) for item in value]


def _pieces(value: Mapping[str, Any] | Sequence[Any]) -> Iterator[dict[str, Any] | list[Any]]:
    if isinstance(value, Mapping):
        items = iter(value.items())
        while piece := dict(islice(items, _MAX_ITEMS)):
            yield piece
    else:
        for start in range(0, len(value), _MAX_ITEMS):
            yield list(value[start : start + _MAX_ITEMS])


def _join(value: Any, pieces: Sequence[bytes]) -> Any:
    if isinstance(value, list):
        return [_join(item, pieces) for item in value]
    if not isinstance(value, dict):
        return value
    if _MARK not in value:
        return {name: _join(one, pieces) for name, one in value.items()}
    named, first, end = value[_MARK]
    joined: Any = {} if named else []
    for piece in pieces[first:end]:
        if named:
            joined.update(json.loads(piece))
        else:
            joined += json.loads(piece)
    return joined
