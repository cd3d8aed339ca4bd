"""Models in the database."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from operator import eq
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from resolute.errors import NotFoundError
from resolute_checkpoints.domain import metadata as metadata_rules
from resolute_checkpoints.domain.model import Author, Model, ModelFilter, ModelKey, NewModel
from resolute_checkpoints.store.rows import batches
from resolute_checkpoints.store.schema import model_versions, models
from resolute_checkpoints.store.sizes import text_bytes
from resolute_serving.auth.grants import NO_WORKSPACE
from resolute_serving.database import text_search
from resolute_serving.database.engine import insert_new
from resolute_serving.pagination import Ordering

_COUNT = (
    sa.select(sa.func.count())
    .where(model_versions.c.model_id == models.c.model_id)
    .scalar_subquery()
    .label("version_count")
)
_ORDERING = Ordering(
    {name: models.c[name] for name in ("name", "number", "create_time", "update_time")},
    unique=models.c.model_id,
    default="name",
    row_bytes=text_bytes(models.c.description, models.c.notes, models.c.labels, models.c.metadata),
)


def insert(connection: Connection, model_id: str, new: NewModel, *, author: Author, now: float) -> bool:
    """Adds a model under the next number, unless its name is taken; returns whether it was added."""
    number = connection.execute(sa.select(sa.func.coalesce(sa.func.max(models.c.number), 0))).scalar_one()
    values = {
        "model_id": model_id,
        "number": number + 1,
        "name": new.name,
        "description": new.description,
        "notes": new.notes,
        "labels": json.dumps(new.labels),
        "metadata": metadata_rules.encode(new.metadata),
        "workspace": "",
        "workspace_id": new.workspace_id,
        "owner": author.name,
        "owner_id": author.user_id,
        "archived": False,
        "next_version": 1,
        "create_time": now,
        "update_time": now,
    }
    return insert_new(connection, models, values)


def find(connection: Connection, key: ModelKey, *, lock: bool = False) -> Model:
    """Reads a model.

    Raises:
        NotFoundError: There is none.
    """
    query = sa.select(models, _COUNT).where(_is(key))
    row = connection.execute(query.with_for_update(of=models) if lock else query).one_or_none()
    if row is None:
        raise NotFoundError(f"{key} does not exist; list the models to see which do", resource=str(key))
    return _to_model(row)


def exists(connection: Connection, key: ModelKey) -> bool:
    """Returns whether a model exists."""
    return connection.execute(sa.select(models.c.model_id).where(_is(key))).first() is not None


def workspace_of(connection: Connection, key: ModelKey) -> int | None:
    """The id of a model's workspace, ``NO_WORKSPACE`` where it has none; None if there is no such model."""
    row = connection.execute(sa.select(models.c.workspace_id).where(_is(key))).one_or_none()
    return None if row is None else row.workspace_id or NO_WORKSPACE


def page(connection: Connection, wanted: ModelFilter, request: Any) -> tuple[list[Model], str]:
    """Reads one page of the list of models.

    Args:
        connection: The caller's transaction.
        wanted: Which models.
        request: The request, for the page and the order.

    Returns:
        The models, and the token of the next page.
    """
    page_rows = _ORDERING.page(connection, request, sa.select(models.c.model_id).where(*_conditions(wanted)))
    ids = [row["model_id"] for row in page_rows.rows]
    read: dict[str, Model] = {}
    for batch in batches(ids):
        rows = connection.execute(sa.select(models, _COUNT).where(models.c.model_id.in_(batch)))
        read.update((row.model_id, _to_model(row)) for row in rows)
    return [read[id_] for id_ in ids if id_ in read], page_rows.next_page_token


def update(
    connection: Connection, model: Model, values: Mapping[str, Any], *, now: float, revised: bool = True
) -> None:
    """Changes columns of a model.

    Args:
        connection: The caller's transaction.
        model: Which one.
        values: The columns, see ``changed_columns``.
        now: When.
        revised: Whether its etag changes: not where only a version has changed.
    """
    revision = models.c.revision + (1 if revised else 0)
    key = models.c.model_id == model.model_id
    connection.execute(sa.update(models).where(key).values(update_time=now, revision=revision, **values))


def delete(connection: Connection, model: Model) -> None:
    """Removes a model with its versions."""
    connection.execute(sa.delete(model_versions).where(model_versions.c.model_id == model.model_id))
    connection.execute(sa.delete(models).where(models.c.model_id == model.model_id))


def next_version_number(connection: Connection, model: Model) -> int:
    """Returns the number of the next version. No number is used twice."""
    key = models.c.model_id == model.model_id
    number: int = connection.execute(
        sa.select(models.c.next_version).where(key).with_for_update()
    ).scalar_one()
    connection.execute(sa.update(models).where(key).values(next_version=number + 1))
    return number


def raise_next_version(connection: Connection, model: Model, taken: Sequence[int]) -> None:
    """Reserves the numbers of imported versions."""
    after = max(taken, default=0) + 1
    key = sa.and_(models.c.model_id == model.model_id, models.c.next_version < after)
    connection.execute(sa.update(models).where(key).values(next_version=after))


def has_labels(column: sa.ColumnElement[str], labels: Sequence[str]) -> list[sa.ColumnElement[bool]]:
    """Conditions that a column of labels has every one of some."""
    return [text_search.any_element(column, partial(eq, label)) for label in labels]


def _conditions(wanted: ModelFilter) -> list[sa.ColumnElement[bool]]:
    conditions = has_labels(models.c.labels, list(wanted.required_labels))
    for column, part in (
        (models.c.name, wanted.name_contains),
        (models.c.description, wanted.description_contains),
    ):
        if part:
            conditions.append(text_search.contains(column, part))
    for chosen, values in (
        (models.c.name, wanted.names),
        (models.c.workspace_id, wanted.workspace_ids),
        (models.c.owner_id, wanted.owner_ids),
    ):
        if values:
            conditions.append(chosen.in_(values))
    if wanted.visible is not None:
        conditions.append(models.c.workspace_id.in_(wanted.visible))
    if wanted.archived is not None:
        conditions.append(models.c.archived == wanted.archived)
    return conditions


def _is(key: ModelKey) -> sa.ColumnElement[bool]:
    if key.model_id:
        return models.c.model_id == key.model_id
    return models.c.number == key.number if key.number else models.c.name == key.name


def _to_model(row: Row[Any]) -> Model:
    return Model(
        model_id=row.model_id,
        number=row.number,
        name=row.name,
        description=row.description,
        notes=row.notes,
        labels=tuple(json.loads(row.labels)),
        metadata=metadata_rules.decode(row.metadata),
        workspace_id=row.workspace_id,
        author=Author(row.owner, row.owner_id),
        archived=row.archived,
        version_count=row.version_count,
        create_time=row.create_time,
        update_time=row.update_time,
        revision=row.revision,
    )
