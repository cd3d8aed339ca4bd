"""Models: checkpoints under names, as versions that are never deleted."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sqlalchemy.engine import Connection

from resolute.contracts.clock import Clock
from resolute.errors import AlreadyExistsError, FailedPreconditionError, NotFoundError, UnavailableError
from resolute_checkpoints import access
from resolute_checkpoints.domain.model import (
    Author,
    Changes,
    Model,
    ModelFilter,
    ModelKey,
    ModelVersion,
    NewModel,
    NewVersion,
)
from resolute_checkpoints.store import audit, model_versions, models, records
from resolute_checkpoints.store.schema import KEYS
from resolute_serving.context import User, actor, current_principal
from resolute_serving.database.engine import Database
from resolute_serving.updates import check_etag

T = TypeVar("T")


class Models:
    """Creates, changes and lists models and their versions.

    Args:
        database: The registry.
        clock: Clock for the times of changes.
    """

    def __init__(self, *, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def create(self, new: NewModel, request: Any) -> Model:
        """Creates a model, or returns the one that the same request has created.

        Raises:
            AlreadyExistsError: The name is taken, or the request id was used for another request.
        """
        author = _author()

        def work(connection: Connection) -> Model:
            now = self._clock.time()
            model_id = KEYS.once(
                connection, request, lambda: _insert(connection, new, author=author, now=now), now=now
            )
            return models.find(connection, ModelKey(model_id=model_id))

        return await self._database.write(work)

    async def get(self, key: ModelKey) -> Model:
        """Returns a model.

        Raises:
            NotFoundError: There is none.
        """
        return await self._database.read(lambda connection: models.find(connection, key))

    async def page(self, wanted: ModelFilter, request: Any) -> tuple[list[Model], str]:
        """Returns one page of models, and the token of the next."""
        return await self._database.read(lambda connection: models.page(connection, wanted, request))

    async def update(self, key: ModelKey, changes: Changes) -> Model:
        """Updates a model.

        Raises:
            AlreadyExistsError: The new name is another model's.
            ConflictError: The model has changed since the caller read it.
            NotFoundError: There is none.
        """

        def work(connection: Connection, model: Model, now: float) -> Model:
            check_etag(changes.etag, revision=model.revision, resource=str(model))
            name = changes.values.get("name", model.name)
            if name != model.name and models.exists(connection, ModelKey(name=name)):
                raise _taken(name)
            values = model_versions.changed_columns(changes, metadata=model.metadata)
            models.update(connection, model, values, now=now)
            return models.find(connection, ModelKey(model_id=model.model_id))

        return await self._change(key, "model.update", work)

    async def delete(self, key: ModelKey) -> None:
        """Removes a model with its versions; nothing happens if there is none."""

        def work(connection: Connection, model: Model, _now: float) -> None:
            models.delete(connection, model)

        try:
            await self._change(key, "model.delete", work)
        except NotFoundError:
            return

    async def create_version(self, key: ModelKey, new: NewVersion, request: Any) -> ModelVersion:
        """Registers a checkpoint as the next version; a repeated request returns the same version.

        Raises:
            AlreadyExistsError: The request id was used for another request.
            FailedPreconditionError: The model is archived.
            NotFoundError: There is no such model, or no such committed checkpoint.
        """
        author = _author()

        def work(connection: Connection) -> ModelVersion:
            model, now = models.find(connection, key, lock=True), self._clock.time()
            created = KEYS.once(
                connection,
                request,
                lambda: str(_insert_version(connection, model, new, author=author, now=now)),
                now=now,
            )
            return model_versions.find(connection, models.find(connection, key), int(created))

        return await self._database.write(work)

    async def version(self, key: ModelKey, number: int | None) -> ModelVersion:
        """Returns a version, the latest for None.

        Raises:
            NotFoundError: There is none.
        """
        return await self._database.read(lambda c: model_versions.find(c, models.find(c, key), number))

    async def versions(
        self, key: ModelKey, labels: Sequence[str], request: Any
    ) -> tuple[list[ModelVersion], str]:
        """Returns one page of the versions of a model, and the token of the next."""
        return await self._database.read(
            lambda c: model_versions.page(c, models.find(c, key), labels, request)
        )

    async def update_version(self, key: ModelKey, number: int, changes: Changes) -> ModelVersion:
        """Updates a version.

        Raises:
            ConflictError: The version has changed since the caller read it.
            NotFoundError: There is none.
        """

        def work(connection: Connection, model: Model, now: float) -> ModelVersion:
            version = model_versions.find(connection, model, number)
            check_etag(changes.etag, revision=version.revision, resource=str(version))
            values = model_versions.changed_columns(changes, metadata=version.metadata)
            model_versions.update(connection, version, values)
            models.update(connection, model, {}, now=now, revised=False)
            return model_versions.find(connection, model, number)

        return await self._change(key, "model.update_version", work, version=number)

    async def delete_version(self, key: ModelKey, number: int) -> None:
        """Removes a version; nothing happens if there is none."""

        def work(connection: Connection, model: Model, now: float) -> None:
            model_versions.delete(connection, model_versions.find(connection, model, number))
            models.update(connection, model, {}, now=now, revised=False)

        try:
            await self._change(key, "model.delete_version", work, version=number)
        except NotFoundError:
            return

    async def _change(
        self, key: ModelKey, action: str, work: Callable[[Connection, Model, float], T], **detail: Any
    ) -> T:
        """Changes a model in a locked row, and records the caller."""
        who = actor()

        def change(connection: Connection) -> T:
            model, now = models.find(connection, key, lock=True), self._clock.time()
            result = work(connection, model, now)
            audit.record(connection, action=action, target=model.model_id, actor=who, now=now, **detail)
            return result

        return await self._database.write(change)


def _insert(connection: Connection, new: NewModel, *, author: Author, now: float) -> str:
    model_id = str(uuid.uuid4())
    if not models.insert(connection, model_id, new, author=author, now=now):
        if models.exists(connection, ModelKey(name=new.name)):
            raise _taken(new.name)
        raise UnavailableError(
            f"model {new.name!r} was not created, because another was at the same time; try again"
        )
    audit.record(connection, action="model.create", target=model_id, actor=author.name, now=now)
    return model_id


def _insert_version(
    connection: Connection, model: Model, new: NewVersion, *, author: Author, now: float
) -> int:
    if model.archived:
        raise FailedPreconditionError(
            f"{model} is archived and takes no versions; unarchive it", resource=str(model)
        )
    # Locked, so that the checkpoint is not deleted between this check and the insert.
    access.require_files(records.find(connection, new.checkpoint_id, lock=True, listed=False))
    number = models.next_version_number(connection, model)
    model_versions.insert(connection, model, number, new, author=author, now=now)
    models.update(connection, model, {}, now=now, revised=False)
    audit.record(
        connection,
        action="model.register",
        target=model.model_id,
        actor=author.name,
        now=now,
        checkpoint=new.checkpoint_id,
    )
    return number


def _author() -> Author:
    principal = current_principal.get()
    user_id = principal.user_id if isinstance(principal, User) else 0
    return Author(actor(), user_id or None)


def _taken(name: str) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"there is a model {name!r} already; choose another name", resource=f"model {name!r}"
    )
