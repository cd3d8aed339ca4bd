"""Models and their versions in the database."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from resolute.errors import NotFoundError
from resolute_checkpoints.domain import metadata as metadata_rules
from resolute_checkpoints.domain.checkpoint import Checkpoint
from resolute_checkpoints.domain.model import Description, Model, ModelKey, ModelQuery, ModelVersion
from resolute_checkpoints.store import rows
from resolute_checkpoints.store.inserts import insert_if_absent
from resolute_checkpoints.store.schema import model_versions, models

_COUNT = (
    sa.select(sa.func.count())
    .where(model_versions.c.model_id == models.c.model_id)
    .scalar_subquery()
    .label("version_count")
)


def insert(connection: Connection, model: Model) -> bool:
    """Adds a model under the next number, unless its name or identifier is taken; says whether it is new."""
    number = connection.execute(sa.select(sa.func.coalesce(sa.func.max(models.c.number), 0))).scalar_one()
    values = {
        "model_id": model.model_id,
        "number": number + 1,
        "name": model.name,
        "description": model.description,
        "notes": model.notes,
        "labels": json.dumps(model.labels),
        "metadata": metadata_rules.encode(model.metadata),
        "workspace": model.workspace,
        "owner": model.owner,
        "archived": False,
        "next_version": 1,
        "create_time": model.create_time,
        "update_time": model.update_time,
    }
    return insert_if_absent(connection, models, values)


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
    """Whether there is such a model."""
    return connection.execute(sa.select(models.c.model_id).where(_is(key))).first() is not None


def page(connection: Connection, query: ModelQuery, *, after: str, size: int) -> list[Model]:
    """Reads a part of the list of models, by name."""
    statement = sa.select(models, _COUNT).where(models.c.name > after)
    for column, part in ((models.c.name, query.name), (models.c.description, query.description)):
        if part:
            statement = statement.where(sa.func.lower(column).contains(part.lower(), autoescape=True))
    if query.workspaces:
        statement = statement.where(models.c.workspace.in_(query.workspaces))
    if not query.include_archived:
        statement = statement.where(sa.not_(models.c.archived))
    for label in query.labels:
        statement = statement.where(models.c.labels.contains(json.dumps(label), autoescape=True))
    found = connection.execute(statement.order_by(models.c.name).limit(size))
    return [_to_model(row) for row in found]


def update(connection: Connection, model: Model, **values: Any) -> None:
    """Changes columns of a model."""
    connection.execute(sa.update(models).where(models.c.model_id == model.model_id).values(**values))


def delete(connection: Connection, model: Model) -> None:
    """Removes a model with its versions."""
    connection.execute(sa.delete(model_versions).where(model_versions.c.model_id == model.model_id))
    connection.execute(sa.delete(models).where(models.c.model_id == model.model_id))


def insert_version(connection: Connection, version: ModelVersion, *, request_id: str) -> None:
    """Adds a version."""
    connection.execute(
        sa.insert(model_versions).values(
            model_id=version.model.model_id,
            version=version.version,
            request_id=request_id,
            checkpoint_id=version.checkpoint.checkpoint_id,
            name=version.name,
            comment=version.comment,
            notes=version.notes,
            labels=json.dumps(version.labels),
            metadata=metadata_rules.encode(version.metadata),
            owner=version.owner,
            create_time=version.create_time,
        )
    )


def next_version_number(connection: Connection, model: Model) -> int:
    """Gives the number of the next version; none is given twice."""
    key = models.c.model_id == model.model_id
    number: int = connection.execute(
        sa.select(models.c.next_version).where(key).with_for_update()
    ).scalar_one()
    connection.execute(sa.update(models).where(key).values(next_version=number + 1))
    return number


def version_of_request(connection: Connection, model: Model, request_id: str) -> ModelVersion | None:
    """The version that a request has made already."""
    wanted = sa.and_(model_versions.c.model_id == model.model_id, model_versions.c.request_id == request_id)
    found = _versions(connection, model, wanted, limit=1)
    return found[0] if found else None


def find_version(connection: Connection, model: Model, version: int) -> ModelVersion:
    """Reads a version, the latest for zero.

    Raises:
        NotFoundError: There is none.
    """
    wanted = model_versions.c.model_id == model.model_id
    if version:
        wanted = sa.and_(wanted, model_versions.c.version == version)
    found = _versions(connection, model, wanted, limit=1)
    if not found:
        what = f"version {version}" if version else "any version"
        raise NotFoundError(
            f"{model} has not {what}; list its versions to see which there are", resource=str(model)
        )
    return found[0]


def version_page(
    connection: Connection, model: Model, *, before: int | None, size: int
) -> list[ModelVersion]:
    """Reads a part of the versions of a model, newest first."""
    wanted = model_versions.c.model_id == model.model_id
    if before is not None:
        wanted = sa.and_(wanted, model_versions.c.version < before)
    return _versions(connection, model, wanted, limit=size)


def update_version(connection: Connection, version: ModelVersion, **values: Any) -> None:
    """Changes columns of a version."""
    connection.execute(sa.update(model_versions).where(_is_version(version)).values(**values))


def delete_version(connection: Connection, version: ModelVersion) -> None:
    """Removes a version."""
    connection.execute(sa.delete(model_versions).where(_is_version(version)))


def changed_columns(description: Description, *, metadata: Any, text_column: str) -> dict[str, Any]:
    """The columns that a description changes.

    Args:
        description: What is to be said.
        metadata: What the metadata are now.
        text_column: The column of its one line.
    """
    values: dict[str, Any] = {
        "name": description.name,
        text_column: description.text,
        "notes": description.notes,
    }
    if description.labels is not None:
        values["labels"] = json.dumps(sorted(set(description.labels)))
    if description.metadata_patch is not None:
        merged = {**metadata, **description.metadata_patch}
        values["metadata"] = metadata_rules.encode({k: v for k, v in merged.items() if v is not None})
    return {name: value for name, value in values.items() if value is not None}


def _is(key: ModelKey) -> sa.ColumnElement[bool]:
    if key.model_id:
        return models.c.model_id == key.model_id
    return models.c.number == key.number if key.number else models.c.name == key.name


def _is_version(version: ModelVersion) -> sa.ColumnElement[bool]:
    return sa.and_(
        model_versions.c.model_id == version.model.model_id, model_versions.c.version == version.version
    )


def _versions(
    connection: Connection, model: Model, wanted: sa.ColumnElement[bool], *, limit: int
) -> list[ModelVersion]:
    query = sa.select(model_versions).where(wanted).order_by(model_versions.c.version.desc()).limit(limit)
    found: Sequence[Row[Any]] = connection.execute(query).all()
    checkpoints = rows.load(connection, [row.checkpoint_id for row in found], listed=False)
    return [_to_version(row, model, checkpoints[row.checkpoint_id]) for row in found]


def _to_model(row: Row[Any]) -> Model:
    return Model(
        model_id=row.model_id,
        number=row.number,
        name=row.name,
        description=row.description,
        notes=row.notes,
        labels=tuple(json.loads(row.labels)),
        metadata=metadata_rules.decode(row.metadata),
        workspace=row.workspace,
        owner=row.owner,
        archived=row.archived,
        version_count=row.version_count,
        create_time=row.create_time,
        update_time=row.update_time,
    )


def _to_version(row: Row[Any], model: Model, checkpoint: Checkpoint) -> ModelVersion:
    return ModelVersion(
        model=model,
        version=row.version,
        checkpoint=checkpoint,
        name=row.name,
        comment=row.comment,
        notes=row.notes,
        labels=tuple(json.loads(row.labels)),
        metadata=metadata_rules.decode(row.metadata),
        owner=row.owner,
        create_time=row.create_time,
    )
