"""The shared filters of lists, as SQL conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from resolute_serving.auth.grants import current_grants
from resolute_serving.validation import invalid

MAX_FILTER_VALUES = 100


def any_of(request: Any, columns: Mapping[str, sa.ColumnElement[Any]]) -> list[sa.ColumnElement[bool]]:
    """The conditions of repeated filter fields: each that is not empty allows any of its values.

    Args:
        request: The request.
        columns: The column that each field filters by.

    Raises:
        InvalidArgumentError: A field has too many values.
    """
    conditions: list[sa.ColumnElement[bool]] = []
    for field, column in columns.items():
        values: Sequence[Any] = getattr(request, field)
        if len(values) > MAX_FILTER_VALUES:
            raise invalid(field, f"{field} has {len(values)} values; {MAX_FILTER_VALUES} are allowed")
        if values:
            conditions.append(column.in_(list(values)))
    return conditions


def equals(request: Any, columns: Mapping[str, sa.ColumnElement[Any]]) -> list[sa.ColumnElement[bool]]:
    """The conditions of optional filter fields: each that is set must match."""
    return [column == getattr(request, field) for field, column in columns.items() if request.HasField(field)]


def seen_in(workspace_id: sa.ColumnElement[Any]) -> list[sa.ColumnElement[bool]]:
    """The condition that leaves out what the caller may not see.

    Args:
        workspace_id: The column with the id of the workspace.
    """
    visible = current_grants.get().visible
    return [] if visible is None else [workspace_id.in_(visible)]
