"""Roles and workspaces for the access check of this service's calls, read from its own database."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from resolute_experiments.accounts.store import locations, workspace_roles
from resolute_serving.auth.policy.resources import Resource
from resolute_serving.context import Role, User
from resolute_serving.database.engine import Database


class StoredAccessLookup:
    """Reads the database at every question. Only users whose role in the cluster is too low cause one.

    Args:
        database: This service's database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def roles(self, user: User) -> Mapping[int, Role]:
        """The roles of a user in single workspaces, by their ids."""
        return await self._database.read(lambda c: workspace_roles.of_user(c, user.user_id))

    async def workspaces(self, resources: Collection[Resource]) -> Mapping[Resource, int]:
        """The ids of the workspaces that objects belong to; what does not exist is left out."""
        return await self._database.read(partial(locations.workspaces_of, resources=resources))
