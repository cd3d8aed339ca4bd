"""Versions of models in the database."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from resolute.errors import NotFoundError
from resolute_checkpoints.domain import metadata as metadata_rules
from resolute_checkpoints.domain.checkpoint import Checkpoint
from resolute_checkpoints.domain.model import Author, Changes, Model, ModelVersion, NewVersion
from resolute_checkpoints.store import rows
from resolute_checkpoints.store.models import has_labels
from resolute_checkpoints.store.schema import checkpoints, model_versions
from resolute_checkpoints.store.sizes import text_bytes
from resolute_serving.pagination import Ordering

_columns = model_versions.c
_ORDERING = Ordering(
    {"number": _columns.version, "name": _columns.name, "create_time": _columns.create_time},
    unique=_columns.version,
    default="number desc",
    row_bytes=text_bytes(
        _columns.comment, _columns.notes, _columns.labels, _columns.metadata, checkpoints.c.metadata
    ),
)


def insert(
    connection: Connection, model: Model, number: int, new: NewVersion, *, author: Author, now: float
) -> None:
    """Adds a version."""
    connection.execute(
        sa.insert(model_versions).values(
            model_id=model.model_id,
            version=number,
            checkpoint_id=new.checkpoint_id,
            name=new.name,
            comment=new.comment,
            notes=new.notes,
            labels=json.dumps(new.labels),
            metadata=metadata_rules.encode(new.metadata),
            owner=author.name,
            owner_id=author.user_id,
            create_time=now,
        )
    )


def numbers(connection: Connection, model: Model) -> frozenset[int]:
    """Returns the numbers of a model's versions."""
    query = sa.select(_columns.version).where(_columns.model_id == model.model_id)
    return frozenset(connection.execute(query).scalars())


def find(connection: Connection, model: Model, number: int | None) -> ModelVersion:
    """Reads a version, the latest for None.

    Raises:
        NotFoundError: There is none.
    """
    query = sa.select(model_versions).where(_columns.model_id == model.model_id)
    if number is not None:
        query = query.where(_columns.version == number)
    row = connection.execute(query.order_by(_columns.version.desc()).limit(1)).one_or_none()
    if row is None:
        missing = "any version" if number is None else f"version {number}"
        raise NotFoundError(
            f"{model} has no {missing}; list its versions to see which there are", resource=str(model)
        )
    return _to_versions(connection, model, [row])[0]


def page(
    connection: Connection, model: Model, labels: Sequence[str], request: Any
) -> tuple[list[ModelVersion], str]:
    """Reads one page of the versions of a model.

    Args:
        connection: The caller's transaction.
        model: The model.
        labels: Only versions that have all of them.
        request: The request, for the page and the order.

    Returns:
        The versions, and the token of the next page.
    """
    query = (
        sa.select(_columns.version)
        .join(checkpoints, checkpoints.c.checkpoint_id == _columns.checkpoint_id)
        .where(_columns.model_id == model.model_id, *has_labels(_columns.labels, labels))
    )
    page_rows = _ORDERING.page(connection, request, query)
    numbers = [row["version"] for row in page_rows.rows]
    read: dict[int, ModelVersion] = {}
    for batch in rows.batches(numbers):
        key = sa.and_(_columns.model_id == model.model_id, _columns.version.in_(batch))
        entries = connection.execute(sa.select(model_versions).where(key)).all()
        read.update((version.number, version) for version in _to_versions(connection, model, entries))
    return [read[number] for number in numbers if number in read], page_rows.next_page_token


def update(connection: Connection, version: ModelVersion, values: Mapping[str, Any]) -> None:
    """Changes columns of a version, see ``changed_columns``."""
    statement = sa.update(model_versions).where(_is(version))
    connection.execute(statement.values(revision=_columns.revision + 1, **values))


def delete(connection: Connection, version: ModelVersion) -> None:
    """Removes a version."""
    connection.execute(sa.delete(model_versions).where(_is(version)))


def changed_columns(changes: Changes, *, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the columns that an update of a model or a version changes.

    Args:
        changes: The update.
        metadata: What the metadata are now.
    """
    values = dict(changes.values)
    if "labels" in values:
        values["labels"] = json.dumps(values["labels"])
    if changes.metadata_patch is not None:
        merged = {**metadata, **changes.metadata_patch}
        values["metadata"] = metadata_rules.encode({k: v for k, v in merged.items() if v is not None})
    return values


def _is(version: ModelVersion) -> sa.ColumnElement[bool]:
    return sa.and_(_columns.model_id == version.model.model_id, _columns.version == version.number)


def _to_versions(connection: Connection, model: Model, page_rows: Sequence[Row[Any]]) -> list[ModelVersion]:
    read = rows.load(connection, [row.checkpoint_id for row in page_rows], listed=False)
    return [_to_version(row, model, read[row.checkpoint_id]) for row in page_rows]


def _to_version(row: Row[Any], model: Model, checkpoint: Checkpoint) -> ModelVersion:
    return ModelVersion(
        model=model,
        number=row.version,
        checkpoint=checkpoint,
        name=row.name,
        comment=row.comment,
        notes=row.notes,
        labels=tuple(json.loads(row.labels)),
        metadata=metadata_rules.decode(row.metadata),
        author=Author(row.owner, row.owner_id),
        create_time=row.create_time,
        revision=row.revision,
    )
