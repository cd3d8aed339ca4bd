"""Comparisons with hyperparameters, which are JSON in the rows of trials."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from resolute_experiments.filters.fields import Condition, as_number, compared
from resolute_experiments.filters.syntax import Comparison
from resolute_experiments.store.schema import trials
from resolute_serving.database.text_search import contains


def compare_hyperparameter(asked: Comparison, name: str, *, dialect: str) -> Condition:
    """Whether a trial has a hyperparameter that compares so.

    Args:
        asked: The comparison.
        name: Its dotted name: a path of nested ones, or a name with dots in it.
        dialect: Of the database.

    Raises:
        InvalidArgumentError: It cannot be compared so.
    """
    if any(letter in name for letter in '"\\'):
        raise asked.wrong("names with quotes or backslashes cannot be searched for")
    return sa.or_(*(_compare(asked, _Value(path, dialect)) for path in _paths(name)))


def has_hyperparameter(name: str, *, dialect: str) -> Condition:
    """Whether a trial has a hyperparameter."""
    return sa.or_(*(_Value(path, dialect).exists for path in _paths(name)))


def _paths(name: str) -> list[Sequence[str]]:
    parts = name.split(".")
    return [[name]] if len(parts) == 1 else [parts, [name]]


class _Value:
    """A value in the JSON of a trial, read by the functions of each database."""

    def __init__(self, path: Sequence[str], dialect: str) -> None:
        if dialect == "postgresql":
            found = sa.func.json_extract_path(trials.c.hparams, *path)
            kind = sa.func.json_typeof(found)
            self.text: sa.ColumnElement[str] = sa.func.json_extract_path_text(
                trials.c.hparams, *path, type_=sa.Text
            )
            # Cast where it is a number alone: other texts would end the query.
            self.number: sa.ColumnElement[float] = sa.case((kind == "number", sa.cast(self.text, sa.Float)))
            self.exists: Condition = kind.is_not(None)
        else:
            place = "$" + "".join(f'."{part}"' for part in path)
            kind = sa.func.json_type(trials.c.hparams, place)
            value = sa.func.json_extract(trials.c.hparams, place)
            words = sa.case(
                (kind == "true", "true"), (kind == "false", "false"), else_=sa.cast(value, sa.Text)
            )
            self.text = sa.type_coerce(words, sa.Text)
            self.number = sa.case((kind.in_(["integer", "real"]), sa.type_coerce(value, sa.Float)))
            self.exists = kind.is_not(None)


def _compare(asked: Comparison, value: _Value) -> Condition:
    if asked.operator == "~":
        return contains(value.text, asked.value)
    number = as_number(asked.value)
    if number is not None:
        return sa.and_(value.exists, compared(value.number, asked.operator, number))
    if asked.operator not in {"=", "!="}:
        raise asked.wrong("compare it by < <= > >= with a number, or by =, != or ~ (contains) with a text")
    return sa.and_(value.exists, compared(value.text, asked.operator, asked.value))
