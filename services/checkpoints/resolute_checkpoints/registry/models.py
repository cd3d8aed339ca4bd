"""Models: checkpoints under names, as versions that nothing deletes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy.engine import Connection

from resolute.contracts.clock import Clock
from resolute.errors import AlreadyExistsError, FailedPreconditionError, NotFoundError, UnavailableError
from resolute_checkpoints import access
from resolute_checkpoints.domain.model import Description, Model, ModelKey, ModelQuery, ModelVersion
from resolute_checkpoints.store import audit, models, records
from resolute_serving.context import actor
from resolute_serving.database.engine import Database

T = TypeVar("T")


class Models:
    """Keeps models.

    Args:
        database: The registry.
        clock: Tells the time of changes.
    """

    def __init__(self, *, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def create(self, model_id: str, name: str, workspace: str, description: Description) -> Model:
        """Creates a model. Safe to repeat with the same identifier.

        Raises:
            AlreadyExistsError: The name or the identifier is taken.
        """
        who, now = actor(), self._clock.time()
        fresh = Model(
            model_id=model_id,
            number=0,
            name=name,
            description=description.text or "",
            notes=description.notes or "",
            labels=tuple(sorted(set(description.labels or ()))),
            metadata=dict(description.metadata_patch or {}),
            workspace=workspace,
            owner=who,
            archived=False,
            version_count=0,
            create_time=now,
            update_time=now,
        )

        def work(connection: Connection) -> Model:
            if models.insert(connection, fresh):
                audit.record(connection, action="model.create", target=model_id, actor=who, now=now)
                return models.find(connection, ModelKey(model_id=model_id))
            key = ModelKey(name=name)
            known = models.find(connection, key) if models.exists(connection, key) else None
            if known is None and not models.exists(connection, ModelKey(model_id=model_id)):
                raise UnavailableError(f"model {name!r} was not created beside another one; try again")
            if known is None or known.model_id != model_id:
                raise AlreadyExistsError(
                    f"there is a model {name!r} already; choose another name", resource=f"model {name!r}"
                )
            return known

        return await self._database.write(work)

    async def get(self, key: ModelKey) -> Model:
        """Gives a model.

        Raises:
            NotFoundError: There is none.
        """
        return await self._database.read(lambda connection: models.find(connection, key))

    async def page(self, query: ModelQuery, *, after: str, size: int) -> list[Model]:
        """Gives a part of the list of models, by name."""
        return await self._database.read(lambda c: models.page(c, query, after=after, size=size))

    async def update(
        self, key: ModelKey, description: Description, *, workspace: str | None, archived: bool | None
    ) -> Model:
        """Changes what is said of a model.

        Raises:
            AlreadyExistsError: The new name is another model's.
            NotFoundError: There is none.
        """
        plain = {"workspace": workspace, "archived": archived}

        def work(connection: Connection, model: Model, now: float) -> Model:
            if description.name is not None and description.name != model.name:
                _require_free(connection, description.name)
            values = models.changed_columns(description, metadata=model.metadata, text_column="description")
            values |= {name: value for name, value in plain.items() if value is not None}
            models.update(connection, model, update_time=now, **values)
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

    async def register(
        self, key: ModelKey, checkpoint_id: str, description: Description, *, request_id: str
    ) -> ModelVersion:
        """Registers a checkpoint as the next version. Safe to repeat with the same request.

        Raises:
            FailedPreconditionError: The model is archived.
            NotFoundError: There is no such model, or no such committed checkpoint.
        """
        who = actor()

        def work(connection: Connection, model: Model, now: float) -> ModelVersion:
            known = models.version_of_request(connection, model, request_id)
            if known is not None:
                return known
            if model.archived:
                raise FailedPreconditionError(
                    f"{model} is archived and takes no versions; unarchive it", resource=str(model)
                )
            # Locked: no deletion comes between this look and the version.
            checkpoint = records.find(connection, checkpoint_id, lock=True, listed=False)
            access.require_files(checkpoint)
            version = ModelVersion(
                model=model,
                version=models.next_version_number(connection, model),
                checkpoint=checkpoint,
                name=description.name or "",
                comment=description.text or "",
                notes=description.notes or "",
                labels=tuple(sorted(set(description.labels or ()))),
                metadata=dict(description.metadata_patch or {}),
                owner=who,
                create_time=now,
            )
            models.insert_version(connection, version, request_id=request_id)
            models.update(connection, model, update_time=now)
            return models.find_version(connection, models.find(connection, key), version.version)

        return await self._change(key, "model.register", work, checkpoint=checkpoint_id)

    async def version(self, key: ModelKey, version: int) -> ModelVersion:
        """Gives a version, the latest for zero.

        Raises:
            NotFoundError: There is none.
        """
        return await self._database.read(lambda c: models.find_version(c, models.find(c, key), version))

    async def versions(self, key: ModelKey, *, before: int | None, size: int) -> list[ModelVersion]:
        """Gives a part of the versions of a model, newest first."""
        return await self._database.read(
            lambda c: models.version_page(c, models.find(c, key), before=before, size=size)
        )

    async def update_version(self, key: ModelKey, version: int, description: Description) -> ModelVersion:
        """Changes what is said of a version.

        Raises:
            NotFoundError: There is none.
        """

        def work(connection: Connection, model: Model, now: float) -> ModelVersion:
            found = models.find_version(connection, model, version)
            values = models.changed_columns(description, metadata=found.metadata, text_column="comment")
            if values:
                models.update_version(connection, found, **values)
            models.update(connection, model, update_time=now)
            return models.find_version(connection, model, version)

        return await self._change(key, "model.update_version", work, version=version)

    async def delete_version(self, key: ModelKey, version: int) -> None:
        """Removes a version; nothing happens if there is none."""

        def work(connection: Connection, model: Model, now: float) -> None:
            models.delete_version(connection, models.find_version(connection, model, version))
            models.update(connection, model, update_time=now)

        try:
            await self._change(key, "model.delete_version", work, version=version)
        except NotFoundError:
            return

    async def _change(
        self, key: ModelKey, action: str, work: Callable[[Connection, Model, float], T], **detail: Any
    ) -> T:
        """Changes a model that stays as it is meanwhile, and notes who did."""
        who = actor()

        def change(connection: Connection) -> T:
            model, now = models.find(connection, key, lock=True), self._clock.time()
            result = work(connection, model, now)
            audit.record(connection, action=action, target=model.model_id, actor=who, now=now, **detail)
            return result

        return await self._database.write(change)


def _require_free(connection: Connection, name: str) -> None:
    if models.exists(connection, ModelKey(name=name)):
        raise AlreadyExistsError(f"there is a model {name!r} already; choose another name")
