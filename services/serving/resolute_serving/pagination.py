"""Pages of lists (AIP-158, AIP-132): bounded sizes, typed orders, and tokens that fit only their own request.

A list in SQL declares an :class:`Ordering` once and reads its pages through it. The position of a page is the
key of the last row before it. So the cost of a page does not depend on its position, and rows that are added
or removed in the meantime neither repeat nor hide others. Lists that are not in SQL use ``page_size``,
``encode_token`` and ``decode_token``.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from google.protobuf.message import Message
from sqlalchemy.engine import Connection

from resolute.errors import InvalidArgumentError
from resolute_serving.database.prepared import PreparedStatement
from resolute_serving.validation import invalid

DEFAULT_PAGE_SIZE = 100
MAX_PAGE_SIZE = 1000

MAX_SKIPPED = 1_000_000

MAX_PAGE_BYTES = 2 * 1024 * 1024
"""About how much a page takes where rows can be large: clients take messages of 4 MiB."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_KEY = "_page_key_{}"
_BYTES = "_page_bytes"
_LIMIT = "_page_limit"
_MADE = 256
"""Statements of one ordering that are kept."""


@dataclass(frozen=True)
class OrderBy:
    """One field of an order."""

    field: str
    """Name of the field in the API."""
    descending: bool = False
    """Whether the largest comes first."""


@dataclass(frozen=True)
class Page:
    """One page of a list."""

    records: Sequence[Sequence[Any]]
    """The rows, in order. After the columns of the query they have some of their position."""
    names: Sequence[str]
    """The names of their columns."""
    next_page_token: str
    """Token of the next page; empty after the last."""

    @property
    def rows(self) -> list[Mapping[Any, Any]]:
        """The rows by the names of their columns."""
        return [dict(zip(self.names, record, strict=True)) for record in self.records]


class Ordering:
    """The possible orders of the rows of a list.

    Args:
        fields: Column or other expression of each field by which requests may order.
        unique: Column that is unique and never NULL. It makes every order total.
        default: Default order, in the notation of requests.
        max_page_size: Most rows of a page.
        row_bytes: Approximate size of a row in the response, if rows can be large. A page ends before its
            rows exceed ``MAX_PAGE_BYTES``, but has at least one row.

    Rows with the value NULL come last in both directions. A column that is declared NOT NULL is assumed to
    have no NULL, so it must not come from the outer side of a join.
    """

    def __init__(
        self,
        fields: Mapping[str, sa.ColumnElement[Any]],
        *,
        unique: sa.ColumnElement[Any],
        default: str,
        max_page_size: int = MAX_PAGE_SIZE,
        row_bytes: sa.ColumnElement[int] | None = None,
    ) -> None:
        self._fields = fields
        self._unique = unique
        self._default = default
        self._max_page_size = max_page_size
        self._row_bytes = row_bytes
        self._made: dict[tuple[sa.Select[Any], str], PreparedStatement] = {}

    def page(
        self,
        connection: Connection,
        request: Any,
        query: sa.Select[Any],
        values: Mapping[str, Any] | None = None,
    ) -> Page:
        """Reads one page.

        Args:
            connection: Where from.
            request: Has ``page_size``, ``page_token``, and maybe ``order_by`` and ``skip``. The token of the
                next page fits requests that differ in nothing else but ``page_size``.
            query: Selects and filters the rows, without an order.
            values: What is bound in the query, if it is one that is made once and used again; None if it is
                made for this request.

        Raises:
            InvalidArgumentError: The size, the token, the order or the number to skip is wrong.
        """
        limit = page_size(request.page_size, most=self._max_page_size)
        order_by = getattr(request, "order_by", "")
        keys = self._keys(order_by)
        position = decode_token(request, fits=lambda value: _is_position(value, keys))
        skipped = _skipped(getattr(request, "skip", 0))
        bound = {**(values or {}), _LIMIT: limit + 1}
        rows: Sequence[Sequence[Any]]
        if values is not None and position is None and not skipped:
            statement = self._prepared(query, order_by)
            rows, names = statement.all(connection, bound), statement.names
        else:
            ordered = self._ordered(query, keys)
            if position is not None:
                ordered = ordered.where(_after(keys, position))
            elif skipped:
                ordered = ordered.offset(skipped)
            # All at once: one by one, each row would cost a step of the cursor.
            result = connection.execute(ordered, bound)
            rows, names = result.all(), list(result.keys())
        fitting = limit if self._row_bytes is None else min(limit, _fitting(rows, names.index(_BYTES)))
        if len(rows) <= fitting:
            return Page(rows, names, "")
        last = dict(zip(names, rows[fitting - 1], strict=True))
        token = encode_token(request, [last[_KEY.format(n)] for n in range(len(keys))])
        return Page(rows[:fitting], names, token)

    def _ordered(self, query: sa.Select[Any], keys: Sequence[_Key]) -> sa.Select[Any]:
        query = query.add_columns(*(key.column.label(_KEY.format(n)) for n, key in enumerate(keys)))
        if self._row_bytes is not None:
            query = query.add_columns(self._row_bytes.label(_BYTES))
        order = (part for key in keys for part in key.order())
        return query.order_by(*order).limit(sa.bindparam(_LIMIT, type_=sa.Integer))

    def _prepared(self, query: sa.Select[Any], order_by: str) -> PreparedStatement:
        prepared = self._made.get((query, order_by))
        if prepared is None:
            if len(self._made) >= _MADE:
                self._made.clear()
            ordered = self._ordered(query, self._keys(order_by))
            prepared = self._made[query, order_by] = PreparedStatement(ordered)
        return prepared

    def _keys(self, text: str) -> list[_Key]:
        order = parse_order_by(text or self._default, allowed=self._fields)
        keys = [_key(self._fields[by.field], by.descending) for by in order]
        # The direction of the last field, so that one index serves the order forwards and backwards.
        return [*keys, _Key(self._unique, order[-1].descending, nullable=False)]


def _fitting(rows: Sequence[Sequence[Any]], place: int) -> int:
    """How many of the first rows fit a page, by their bytes at one place of each."""
    total = 0
    for count, row in enumerate(rows):
        total += row[place]
        if count and total > MAX_PAGE_BYTES:
            return count
    return len(rows)


def parse_order_by(text: str, *, allowed: Mapping[str, Any]) -> list[OrderBy]:
    """Reads an order such as ``"create_time desc, name"``.

    Args:
        text: The fields, separated by commas; ``desc`` or ``asc`` may follow each.
        allowed: The fields that there are.

    Raises:
        InvalidArgumentError: A field does not exist or comes twice, or the text cannot be read.
    """
    order: list[OrderBy] = []
    for part in text.split(","):
        field, *rest = part.split() or [""]
        if field not in allowed or rest not in ([], ["asc"], ["desc"]):
            raise invalid(
                "order_by",
                f"order_by has {part.strip()[:80]!r}; write a field, then 'desc' for descending order; "
                f"the fields are {', '.join(sorted(allowed))}",
            )
        if field in {by.field for by in order}:
            raise invalid("order_by", f"order_by has {field!r} twice; name each field once")
        order.append(OrderBy(field, descending=rest == ["desc"]))
    return order


def page_size(requested: int, *, default: int = DEFAULT_PAGE_SIZE, most: int = MAX_PAGE_SIZE) -> int:
    """Returns how many items a page holds: ``default`` for zero, never above ``most``.

    Raises:
        InvalidArgumentError: The size is negative.
    """
    if requested < 0:
        raise invalid("page_size", f"page_size is {requested}; it must be zero or above")
    return min(requested or default, most)


def _skipped(requested: int) -> int:
    if not 0 <= requested <= MAX_SKIPPED:
        raise invalid("skip", f"skip is {requested}; it must be from 0 to {MAX_SKIPPED}")
    return requested


def encode_token(request: Message, position: Any) -> str:
    """Makes the token of the next page.

    Args:
        request: The request whose filters and order the token belongs to, with a ``page_token`` field.
        position: JSON-able key of the last item on this page.
    """
    text = json.dumps([_fingerprint(request), position], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode()


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number from zero that fits 64 bits."""
    return type(value) is int and 0 <= value < 2**63


def is_text(value: Any) -> bool:
    """Whether a value is text that a database can hold."""
    return isinstance(value, str) and _UNSTORABLE.search(value) is None


def decode_token(request: Message, *, fits: Callable[[Any], bool] = is_whole) -> Any:
    """Returns the position in the request's token; None for the first page.

    Args:
        request: The request.
        fits: Whether a value can be a position of the list; a token can be made up.

    Raises:
        InvalidArgumentError: The token was not made here, or not for these filters and this order.
    """
    token: str = request.page_token  # type: ignore[attr-defined]
    if not token:
        return None
    try:
        fingerprint, position = json.loads(base64.urlsafe_b64decode(token.encode()))
    except (ValueError, TypeError, RecursionError, binascii.Error) as error:
        raise _foreign_token() from error
    if fingerprint != _fingerprint(request):
        raise invalid(
            "page_token",
            "page_token belongs to a request with other filters or another order; begin with the first page",
        )
    if not fits(position):
        raise _foreign_token()
    return position


def _foreign_token() -> InvalidArgumentError:
    return invalid("page_token", "page_token is not one that this service gave; begin with the first page")


def _fingerprint(request: Message) -> str:
    bare = type(request)()
    bare.CopyFrom(request)
    bare.ClearField("page_token")
    if "page_size" in bare.DESCRIPTOR.fields_by_name:
        bare.ClearField("page_size")
    return hashlib.sha256(bare.SerializeToString(deterministic=True)).hexdigest()[:12]


@dataclass(frozen=True)
class _Key:
    """One part of a row's position."""

    column: sa.ColumnElement[Any]
    descending: bool
    nullable: bool

    def order(self) -> list[sa.ColumnElement[Any]]:
        """The terms of ORDER BY."""
        term = self.column.desc() if self.descending else self.column.asc()
        return [self.column.is_(None), term] if self.nullable else [term]

    def equals(self, value: Any) -> sa.ColumnElement[bool]:
        """Whether a row has this value."""
        return self.column.is_(None) if value is None else self.column == value

    def follows(self, value: Any) -> sa.ColumnElement[bool]:
        """Whether a row comes after those with this value."""
        if value is None:
            return sa.false()
        beyond = self.column < value if self.descending else self.column > value
        return sa.or_(beyond, self.column.is_(None)) if self.nullable else beyond


def _key(column: sa.ColumnElement[Any], descending: bool) -> _Key:
    return _Key(column, descending, nullable=not isinstance(column, sa.Column) or bool(column.nullable))


def _after(keys: list[_Key], values: list[Any]) -> sa.ColumnElement[bool]:
    """Whether a row comes after a position."""
    if len({key.descending for key in keys}) == 1 and not any(key.nullable for key in keys):
        # Databases find the place of a row of values in an index, but not that of the alternatives below.
        columns = sa.tuple_(*(key.column for key in keys))
        place = sa.tuple_(
            *(sa.literal(value, key.column.type) for key, value in zip(keys, values, strict=True))
        )
        return columns < place if keys[0].descending else columns > place
    alternatives = [
        sa.and_(*(k.equals(v) for k, v in zip(keys[:n], values[:n], strict=True)), keys[n].follows(values[n]))
        for n in range(len(keys))
    ]
    return sa.or_(*alternatives)


def _is_position(value: Any, keys: Sequence[_Key]) -> bool:
    return isinstance(value, list) and len(value) == len(keys) and all(map(_is_value, value, keys))


def _is_value(value: Any, key: _Key) -> bool:
    if value is None:
        return key.nullable
    if isinstance(value, str):
        return key.column.type.python_type is str and is_text(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return False
    kind = key.column.type.python_type
    return isinstance(value, (int, float) if kind is float else kind)
