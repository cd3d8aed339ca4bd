"""The sizes of texts in bytes, so that pages are bounded before they are read."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction


class octet_length(GenericFunction[int]):  # noqa: N801 - the name of the SQL function
    """The number of bytes of a text in UTF-8."""

    type = sa.BigInteger()
    inherit_cache = True


@compiles(octet_length, "sqlite")
def _sqlite_length(element: octet_length, compiler: Any, **options: Any) -> str:
    # SQLite has octet_length only since 3.43. Its length() counts characters of texts and bytes of blobs.
    return f"length(CAST({compiler.process(element.clauses, **options)} AS BLOB))"


def text_bytes(*columns: sa.ColumnElement[str]) -> sa.ColumnElement[int]:
    """Returns an expression of the bytes in some columns of text."""
    total: sa.ColumnElement[int] = sa.literal(0, sa.BigInteger)
    for column in columns:
        total = total + octet_length(column)
    return total
