"""Roles and workspaces where there are none: only roles in the cluster count."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from resolute_serving.auth.policy.resources import Resource
from resolute_serving.context import Role, User


class NoRoles:
    """Knows nobody and nothing."""

    async def roles(self, user: User) -> Mapping[int, Role]:
        return {}

    async def workspaces(self, resources: Collection[Resource]) -> Mapping[Resource, int]:
        return {}
