"""Finds users by name."""

from __future__ import annotations

from typing import Any

from resolute.api.experiments.v1 import access_service_pb2
from resolute.errors import NotFoundError


def user_id(access: Any, name: str) -> int:
    """Returns the id of a user.

    Args:
        access: Stub of the access service.
        name: The name.

    Raises:
        NotFoundError: There is none.
    """
    users = access.ListUsers(access_service_pb2.ListUsersRequest(names=[name])).users
    if not users:
        raise NotFoundError(f"user {name!r} does not exist", resource=f"user {name}")
    return int(users[0].user_id)
