"""Looks up the workspaces of checkpoints and models. A checkpoint belongs to its experiment's current one."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy.engine import Connection

from resolute_checkpoints.domain.model import ModelKey
from resolute_checkpoints.store import models, records
from resolute_serving.auth.access_lookup import AccessLookup
from resolute_serving.auth.policy.resources import Kind, Resource
from resolute_serving.context import Role, User
from resolute_serving.database.engine import Database

_MODELS = frozenset({Kind.MODEL, Kind.MODEL_NUMBER, Kind.MODEL_NAME})
_LARGEST_NUMBER = 2**63 - 1


class RegistryAccessLookup:
    """Looks up checkpoints and models in the registry, and everything else at the experiments service.

    Args:
        database: The registry.
        experiments: Looks up the roles of users and the workspaces of experiments.
    """

    def __init__(self, database: Database, experiments: AccessLookup) -> None:
        self._database = database
        self._experiments = experiments

    async def roles(self, user: User) -> Mapping[int, Role]:
        """Returns the roles of a user in single workspaces, by workspace id."""
        return await self._experiments.roles(user)

    async def workspaces(self, resources: Collection[Resource]) -> Mapping[Resource, int]:
        """Returns the workspace id of each object. Objects that do not exist are left out."""
        checkpoints = {each.key: each for each in resources if each.kind is Kind.CHECKPOINT}
        named_models = [each for each in resources if each.kind in _MODELS]
        others = {each for each in resources if each.kind is not Kind.CHECKPOINT and each.kind not in _MODELS}

        def read(connection: Connection) -> tuple[dict[str, str], dict[Resource, int]]:
            named = {model: _workspace_of(connection, model) for model in named_models}
            known = {model: number for model, number in named.items() if number is not None}
            return records.experiments_of(connection, checkpoints), known

        experiments, named = await self._database.read(read)
        owners = {
            checkpoints[checkpoint]: Resource(Kind.EXPERIMENT, experiment)
            for checkpoint, experiment in experiments.items()
        }
        asked = others | set(owners.values())
        places = await self._experiments.workspaces(asked) if asked else {}
        return {
            **named,
            **{resource: number for resource, number in places.items() if resource in others},
            **{checkpoint: places[owner] for checkpoint, owner in owners.items() if owner in places},
        }


def _workspace_of(connection: Connection, model: Resource) -> int | None:
    if model.kind is Kind.MODEL_NUMBER:
        number = int(model.key)
        return (
            models.workspace_of(connection, ModelKey(number=number))
            if 0 < number <= _LARGEST_NUMBER
            else None
        )
    if "\0" in model.key:
        return None
    key = ModelKey(model_id=model.key) if model.kind is Kind.MODEL else ModelKey(name=model.key)
    return models.workspace_of(connection, key)
