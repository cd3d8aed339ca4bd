"""Text conditions that mean the same in each database, without regard to case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction

SQLITE_LOWER = "lower_of_all_letters"
"""Which connections to SQLite have: its own ``lower`` knows the letters of ASCII alone."""


class lowered(GenericFunction[str]):  # noqa: N801 - as other SQL functions
    """A text in lower case."""

    type = sa.Text()
    inherit_cache = True


@compiles(lowered)
def _lower(element: lowered, compiler: Any, **options: Any) -> str:
    return f"lower({compiler.process(element.clauses, **options)})"


@compiles(lowered, "sqlite")
def _sqlite_lower(element: lowered, compiler: Any, **options: Any) -> str:
    return f"{SQLITE_LOWER}({compiler.process(element.clauses, **options)})"


class json_elements(GenericFunction[str]):  # noqa: N801 - as other SQL functions
    """The elements of a list in JSON, as rows with a ``value``."""

    inherit_cache = True


@compiles(json_elements)
def _elements(element: json_elements, compiler: Any, **options: Any) -> str:
    return f"json_array_elements_text(CAST({compiler.process(element.clauses, **options)} AS JSON))"


@compiles(json_elements, "sqlite")
def _sqlite_elements(element: json_elements, compiler: Any, **options: Any) -> str:
    return f"json_each({compiler.process(element.clauses, **options)})"


def add_functions(connection: Any) -> None:
    """Gives a connection of the driver of SQLite what the conditions here call."""
    connection.create_function(SQLITE_LOWER, 1, _python_lower, deterministic=True)


def contains(column: sa.ColumnElement[Any], part: str) -> sa.ColumnElement[bool]:
    """Whether a text has a part, in any case."""
    return matches(column, sa.literal(pattern_of(part)))


def matches(column: sa.ColumnElement[Any], pattern: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    """Whether a text has the part that a pattern is of, in any case."""
    # The database lowers both: another one than Python may know fewer letters.
    return lowered(column).like(lowered(pattern), escape="/")


def pattern_of(part: str) -> str:
    """The pattern of texts that have a part."""
    return "%" + part.replace("/", "//").replace("%", "/%").replace("_", "/_") + "%"


def any_element(
    column: sa.ColumnElement[Any], wanted: Callable[[sa.ColumnElement[str]], sa.ColumnElement[bool]]
) -> sa.ColumnElement[bool]:
    """Whether a list of texts in JSON has one of which a condition is true."""
    held = json_elements(column).table_valued("value")
    value = sa.type_coerce(held.c.value, sa.Text)
    return sa.exists(sa.select(sa.literal(1)).select_from(held).where(wanted(value)))


def _python_lower(text: object) -> object:
    return text.lower() if isinstance(text, str) else text
